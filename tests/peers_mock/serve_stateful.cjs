// stripe-stateful-mock on a free port of this machine alone: prints the port.
const log = require("loglevel");
log.setDefaultLevel("silent");
const { createExpressApp } = require("stripe-stateful-mock");
const server = createExpressApp().listen(0, "127.0.0.1", () => console.log(server.address().port));

//! What has to happen now and then, or the simulation proves less than it says.

use serde_json::Value;

use super::Judge;

impl Judge {
    pub(super) fn notice_contradiction(&self, contradicted: Option<&str>) {
        match contradicted {
            Some("failed_after_succeeded") => {
                self.core.saw("a refund that failed after it succeeded");
            }
            Some("effect_after_failed") => self.core.saw("an effect of a row closed as failed"),
            Some("second_effect") => self.core.saw("a second effect"),
            Some("ref_mismatch") => self.core.saw("a typed id that did not match"),
            _ => {}
        }
    }

    pub(super) fn notice_outcome(&self, detail: &Value) {
        let core = &self.core;
        match detail["class"].as_str().unwrap_or_default() {
            "key_in_progress" => core.saw("a 409"),
            "server_error" => core.saw("a 5xx"),
            "not_sent" => core.saw("an attempt that was not sent"),
            "retryable_failure" => core.saw("a 429"),
            "side_effect_unknown" => core.saw("an attempt nobody knows the outcome of"),
            "key_mismatch" => core.saw("a key mismatch"),
            "reply_mismatch" => core.saw("a reply about something else"),
            "pending" => core.saw("a pending object"),
            _ => {}
        }
        if detail["error"] == "interrupted" {
            core.saw("an interrupted attempt");
        }
        if detail["late"] == Value::Bool(true) {
            core.saw("an outcome that came late");
        }
        if detail["class"] == "succeeded" && detail["replayed"] == Value::Bool(true) {
            core.saw("a retry that got the saved success");
        }
    }
}

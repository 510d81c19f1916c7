//! Declarations of tools in the JSON of model services, without a client.

use serde_json::{Value, json};

use crate::schema::SchemaForm;
use crate::tool::Tool;
use crate::tool_set::ToolSet;

impl Tool {
    /// Returns the declaration for Anthropic's Messages API: `name`, `description` and `input_schema`, or `type` and `name` for a tool
    /// that the API itself defines.
    ///
    /// Source: <https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview>.
    pub fn to_anthropic(&self, form: SchemaForm) -> Value {
        let mut declaration = match self.definition.anthropic_type {
            Some(defined) => json!({ "type": defined, "name": self.name() }),
            None => {
                let schema = self.input_schema(form);
                json!({ "name": self.name(), "description": self.description(), "input_schema": schema })
            }
        };
        if form == SchemaForm::Strict {
            declaration["strict"] = true.into();
        }
        declaration
    }

    /// Returns the declaration for OpenAI's Chat Completions API: a `function` with `name`, `description`, `parameters` and `strict`.
    ///
    /// Source: <https://platform.openai.com/docs/guides/function-calling>.
    pub fn to_openai(&self, form: SchemaForm) -> Value {
        let function = json!({
            "name": self.name(),
            "description": self.description(),
            "parameters": self.input_schema(form),
            "strict": form == SchemaForm::Strict,
        });
        json!({ "type": "function", "function": function })
    }

    /// Returns the declaration for the Gemini API: `name`, `description` and `parametersJsonSchema`.
    ///
    /// Source: <https://ai.google.dev/api/caching#FunctionDeclaration>.
    pub fn to_gemini(&self) -> Value {
        let schema = self.input_schema(SchemaForm::Plain);
        json!({ "name": self.name(), "description": self.description(), "parametersJsonSchema": schema })
    }
}

impl ToolSet {
    /// Returns the value of `tools` in a request to Anthropic's Messages API.
    pub fn to_anthropic(&self, form: SchemaForm) -> Value {
        self.tools().iter().map(|tool| tool.to_anthropic(form)).collect()
    }

    /// Returns the value of `tools` in a request to OpenAI's Chat Completions API.
    pub fn to_openai(&self, form: SchemaForm) -> Value {
        self.tools().iter().map(|tool| tool.to_openai(form)).collect()
    }

    /// Returns the value of `tools` in a request to the Gemini API.
    pub fn to_gemini(&self) -> Value {
        let declarations: Value = self.tools().iter().map(Tool::to_gemini).collect();
        json!([{ "functionDeclarations": declarations }])
    }
}

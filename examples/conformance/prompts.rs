//! What the prompts say.

use rmcp::{
    ErrorData,
    model::{
        ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, PromptMessage, RequestStateCodec,
        Role,
    },
};
use serde_json::json;

use crate::{
    rounds::{Round, form},
    tools::{PICTURE, resource, text},
};

/// Gets a prompt.
pub(crate) fn get(
    states: &RequestStateCodec,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name: &str| {
        let given = request.arguments.as_ref().and_then(|arguments| arguments.get(name)?.as_str());
        given.ok_or_else(|| ErrorData::invalid_params(format!("the argument `{name}` is missing"), None))
    };
    let messages = match request.name.as_str() {
        "test_simple_prompt" | "test_changing_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1")?, argument("arg2")?);
            vec![text(format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let embedded = resource(argument("resourceUri")?, "text/plain", "Embedded resource content for testing.");
            vec![embedded, text("Please process the embedded resource above.")]
        }
        "test_prompt_with_image" => {
            vec![ContentBlock::image(PICTURE, "image/png"), text("Please analyze the image above.")]
        }
        "test_input_required_result_prompt" => {
            let round = Round::of_prompt(states, request);
            if let Some(asked) = round.ask(json!({"user_context": form("In what context?", "context")}))? {
                return Ok(asked.into());
            }
            vec![text(round.summary())]
        }
        name => return Err(ErrorData::invalid_params(format!("unknown prompt `{name}`"), None)),
    };
    let messages = messages.into_iter().map(|content| PromptMessage::new(Role::User, content));
    Ok(GetPromptResult::new(messages.collect()).into())
}

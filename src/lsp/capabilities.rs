//! What the client can do, and what this server offers.

use tower_lsp::gen_lsp_types as lsp;

use super::documents::Encoding;
use super::ext::{COMMANDS, ClientOptions, SCHEME};

/// What the client can do, as far as this server uses it.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a capability of its own in the protocol")]
pub struct ClientFeatures {
    /// What it says in `initializationOptions`.
    pub options: ClientOptions,
    /// What `character` counts.
    pub encoding: Encoding,
    /// It opens virtual documents by `workspace/textDocumentContent`.
    pub text_document_content: bool,
    /// `window/workDoneProgress/create`.
    pub progress: bool,
    /// `window/showDocument`.
    pub show_document: bool,
    /// `workspace/inlayHint/refresh`.
    pub inlay_hint_refresh: bool,
    /// `workspace/codeLens/refresh`.
    pub code_lens_refresh: bool,
    /// `workspace/configuration`.
    pub configuration: bool,
    /// It can be asked to tell about changed settings.
    pub register_configuration: bool,
    /// Hovers may be Markdown.
    pub markdown: bool,
}

impl ClientFeatures {
    /// Reads what the client sent.
    pub fn new(params: &lsp::InitializeParams) -> Self {
        let capabilities = &params.capabilities;
        let options = params.initialization_options.clone().and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default();
        let workspace = capabilities.workspace.as_ref();
        let window = capabilities.window.as_ref();
        let text = capabilities.text_document.as_ref();
        let encodings = capabilities.general.as_ref().and_then(|general| general.position_encodings.as_deref()).unwrap_or_default();
        Self {
            options,
            encoding: encoding(encodings),
            text_document_content: workspace.is_some_and(|workspace| workspace.text_document_content.is_some()),
            progress: window.is_some_and(|window| window.work_done_progress == Some(true)),
            show_document: window.and_then(|window| window.show_document.as_ref()).is_some_and(|show| show.support),
            inlay_hint_refresh: workspace
                .and_then(|workspace| workspace.inlay_hint.as_ref())
                .is_some_and(|hint| hint.refresh_support == Some(true)),
            code_lens_refresh: workspace
                .and_then(|workspace| workspace.code_lens.as_ref())
                .is_some_and(|lens| lens.refresh_support == Some(true)),
            configuration: workspace.is_some_and(|workspace| workspace.configuration == Some(true)),
            register_configuration: workspace
                .and_then(|workspace| workspace.did_change_configuration.as_ref())
                .is_some_and(|change| change.dynamic_registration == Some(true)),
            markdown: text
                .and_then(|text| text.hover.as_ref())
                .and_then(|hover| hover.content_format.as_ref())
                .is_none_or(|formats| formats.contains(&lsp::MarkupKind::Markdown)),
        }
    }

    /// Whether the client asks the person for a question that a command lacks. One that follows runs by their events is
    /// a client of ours, and does.
    pub fn asks_for_questions(&self) -> bool {
        self.options.run_events
    }

    /// Whether the client shows `codeinterp:` documents in one way or another.
    pub fn shows_virtual_documents(&self) -> bool {
        self.text_document_content || self.options.virtual_documents
    }
}

/// The first encoding in the client's order of preference that is known here.
fn encoding(offered: &[lsp::PositionEncodingKind]) -> Encoding {
    offered
        .iter()
        .find_map(|kind| match kind {
            lsp::PositionEncodingKind::UTF8 => Some(Encoding::Utf8),
            lsp::PositionEncodingKind::UTF16 => Some(Encoding::Utf16),
            lsp::PositionEncodingKind::UTF32 => Some(Encoding::Utf32),
            lsp::PositionEncodingKind::Custom(_) => None,
        })
        .unwrap_or_default()
}

/// What this server offers to such a client.
pub fn server_capabilities(client: &ClientFeatures) -> lsp::ServerCapabilities {
    lsp::ServerCapabilities {
        position_encoding: Some(match client.encoding {
            Encoding::Utf8 => lsp::PositionEncodingKind::UTF8,
            Encoding::Utf16 => lsp::PositionEncodingKind::UTF16,
            Encoding::Utf32 => lsp::PositionEncodingKind::UTF32,
        }),
        text_document_sync: Some(lsp::TextDocumentSync::Options(lsp::TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(lsp::TextDocumentSyncKind::Incremental),
            save: Some(lsp::Save::Bool(true)),
            ..Default::default()
        })),
        hover_provider: Some(true.into()),
        inlay_hint_provider: Some(lsp::InlayHintProvider::InlayHintOptions(lsp::InlayHintOptions::default())),
        code_action_provider: Some(lsp::CodeActionProvider::CodeActionOptions(lsp::CodeActionOptions {
            code_action_kinds: Some(vec![super::handlers::code_action::kind(), lsp::CodeActionKind::QuickFix]),
            ..Default::default()
        })),
        code_lens_provider: Some(lsp::CodeLensOptions::default()),
        document_link_provider: Some(lsp::DocumentLinkOptions::default()),
        execute_command_provider: Some(lsp::ExecuteCommandOptions {
            commands: COMMANDS.iter().map(|&name| name.to_owned()).collect(),
            ..Default::default()
        }),
        workspace: Some(lsp::WorkspaceOptions {
            workspace_folders: Some(lsp::WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(lsp::ChangeNotifications::Bool(true)),
            }),
            text_document_content: Some(lsp::TextDocumentContent::Options(lsp::TextDocumentContentOptions {
                schemes: vec![SCHEME.to_owned()],
            })),
            ..Default::default()
        }),
        ..Default::default()
    }
}

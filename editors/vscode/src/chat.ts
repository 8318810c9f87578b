/**
 * The editor's own language models for the server: `codeinterp/chat` through `vscode.lm`. No key is needed; VS Code asks the
 * person for consent at the first use.
 */
import * as vscode from 'vscode';
import { type LanguageClient, LSPErrorCodes, ResponseError } from 'vscode-languageclient/node';
import { fit, toolSchema, toTurns, type Turn } from './chat_messages';
import { type ChatParams, type ChatResult, methods } from './lsp_ext';
import { keyOf, pickEditorModel } from './editor_models';
import { message } from './messages';

/** Answers the server's questions to the editor's models. */
export function registerChat(client: LanguageClient, log: vscode.LogOutputChannel): void {
  client.onRequest(methods.chat, async (params: ChatParams, token: vscode.CancellationToken): Promise<ChatResult> => {
    try {
      return await chat(client, params, token);
    } catch (error) {
      log.warn(`The editor's language model did not answer: ${message(error)}`);
      throw toResponseError(error, token);
    }
  });
}

async function chat(client: LanguageClient, params: ChatParams, token: vscode.CancellationToken): Promise<ChatResult> {
  const model = await chosenModel();
  const turns = await fitted(model, toTurns(params.messages), token);
  const tools = (params.tools ?? []).map((tool) => ({
    name: tool.name,
    description: tool.description ?? '',
    inputSchema: toolSchema(tool),
  }));
  const response = await model.sendRequest(
    turns.map(({ role, text }) =>
      role === 'assistant' ? vscode.LanguageModelChatMessage.Assistant(text) : vscode.LanguageModelChatMessage.User(text),
    ),
    {
      justification: vscode.l10n.t('Code Interpreter asks the model to write Python for your data. What is sent follows the setting codeinterp.privacy.send.'),
      ...(tools.length === 0 ? {} : { tools }),
    },
    token,
  );
  const result: ChatResult = { text: '', finishReason: 'stop' };
  for await (const part of response.stream) {
    if (token.isCancellationRequested) {
      throw new vscode.CancellationError();
    }
    if (part instanceof vscode.LanguageModelTextPart) {
      result.text += part.value;
      await client.sendNotification(methods.chatDelta, { id: params.id, text: part.value });
    } else if (part instanceof vscode.LanguageModelToolCallPart) {
      (result.toolCalls ??= []).push({ name: part.name, arguments: part.input });
      result.finishReason = 'tool_calls';
    }
  }
  if (token.isCancellationRequested) {
    throw new vscode.CancellationError();
  }
  return result;
}

async function fitted(model: vscode.LanguageModelChat, turns: Turn[], token: vscode.CancellationToken): Promise<Turn[]> {
  const counts = await Promise.all(turns.map(({ text }) => model.countTokens(text, token)));
  const kept = fit(turns, counts, model.maxInputTokens);
  if (kept === undefined) {
    throw new Error(
      vscode.l10n.t('The question and its data are longer than {0} takes ({1} tokens). Choose another model, or set codeinterp.privacy.send to "schema".', model.name, model.maxInputTokens),
    );
  }
  return kept;
}

/** The model that the setting names; the only one there is; or the one that the person picks now, which is remembered. */
async function chosenModel(): Promise<vscode.LanguageModelChat> {
  const models = await vscode.lm.selectChatModels();
  const wanted = vscode.workspace.getConfiguration('codeinterp').get<string>('editorModel', '');
  const found = models.find((model) => keyOf(model) === wanted || model.id === wanted || model.family === wanted);
  const [only] = models;
  if (found !== undefined) {
    return found;
  }
  if (only === undefined) {
    throw vscode.LanguageModelError.NotFound(
      vscode.l10n.t('This editor offers no language model. Sign in to one (GitHub Copilot, for example), or choose another model for Code Interpreter.'),
    );
  }
  return models.length === 1 ? only : pickEditorModel(models);
}

function toResponseError(error: unknown, token: vscode.CancellationToken): ResponseError<{ kind: string }> {
  if (token.isCancellationRequested || error instanceof vscode.CancellationError) {
    return new ResponseError(LSPErrorCodes.RequestCancelled, vscode.l10n.t('cancelled'), { kind: 'cancelled' });
  }
  const kind = error instanceof vscode.LanguageModelError ? error.code : 'Unknown';
  const text =
    kind === vscode.LanguageModelError.NoPermissions.name
      ? vscode.l10n.t("The use of the editor's language model was not allowed. Allow it when asked, or choose another model.")
      : message(error);
  return new ResponseError(LSPErrorCodes.RequestFailed, text, { kind });
}

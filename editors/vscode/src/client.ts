/**
 * The language client: capabilities, middleware, and the ties between the server's messages and the rest of the extension.
 */
import type { ChildProcess } from 'node:child_process';
import * as vscode from 'vscode';
import {
  type ClientCapabilities,
  CloseAction,
  type ConfigurationItem,
  ErrorAction,
  type FeatureState,
  LanguageClient,
  type LanguageClientOptions,
  RevealOutputChannelOn,
  type StaticFeature,
} from 'vscode-languageclient/node';
import { mergedSettings, userSettings } from './config';
import type { HintCommands } from './hint_commands';
import { withInlineImages } from './hover_images';
import { select } from './settings';

export { registerChat } from './chat';

/** What the client needs of the others. */
export interface ClientHooks {
  log: vscode.LogOutputChannel;
  /** Keys of the settings section. */
  keys: readonly string[];
  /** The connection ended without being asked to. */
  closed: () => void;
  /** The server wants a virtual document shown. */
  showVirtual: (uri: vscode.Uri, takeFocus: boolean) => Promise<void>;
  /** Reads an artifact's bytes, for pictures in hovers. */
  readArtifact: (uri: vscode.Uri) => Promise<Uint8Array>;
  /** What the parts of hints run; it outlives the client, as drawn hints do. */
  hintCommands: HintCommands;
  /** A change of progress that the server reports. */
  progress: (token: string | number, value: { kind: string; title?: string; message?: string; percentage?: number; cancellable?: boolean }) => void;
}

/** Commands that a link in a hover or a report may run. */
const LINK_COMMANDS = ['codeinterp.openArtifact', 'codeinterp.openReport', 'codeinterp.analyzeFile', 'codeinterp.followUp'];

/** Features of the client library that this extension does itself. */
const OWN_FEATURES = new Set([
  // Our commands carry the server's names, so that its lenses and hints reach them: the library must not register them too.
  'workspace/executeCommand',
  // Virtual documents come from our file system, which also serves their charts.
  'workspace/textDocumentContent',
]);

/** Says to the server what the left-out features would have said. */
class OwnCapabilities implements StaticFeature {
  fillClientCapabilities(capabilities: ClientCapabilities): void {
    capabilities.workspace = {
      ...capabilities.workspace,
      executeCommand: { dynamicRegistration: false },
      textDocumentContent: { dynamicRegistration: false },
    };
  }
  initialize(): void {
    // Nothing to set up: the handlers are registered by `createClient`'s caller.
  }
  getState(): FeatureState {
    return { kind: 'static' };
  }
  clear(): void {
    // No state.
  }
}

class Client extends LanguageClient {
  override registerFeature(feature: Parameters<LanguageClient['registerFeature']>[0]): void {
    const method = 'registrationType' in feature ? feature.registrationType.method : '';
    if (!OWN_FEATURES.has(method)) {
      super.registerFeature(feature);
    }
  }

  override error(text: string, data?: unknown): void {
    // `Server` tells the person about failures, once and with a remedy; the library's own message would be a second one.
    super.error(text, data, false);
  }
}

/** Builds a client that has not been started. */
export function createClient(spawnServer: () => Promise<ChildProcess>, hooks: ClientHooks): LanguageClient {
  const options: LanguageClientOptions = {
    // Every document: a question may be about the lines of any of them.
    documentSelector: [{ scheme: 'file' }, { scheme: 'untitled' }],
    outputChannel: hooks.log,
    traceOutputChannel: hooks.log,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    diagnosticCollectionName: 'codeinterp',
    initializationOptions: () => {
      const settings = userSettings(hooks.keys);
      return { ...settings, virtualDocuments: true, runEvents: true, chat: settings['model'] === 'editor' };
    },
    markdown: { isTrusted: { enabledCommands: LINK_COMMANDS }, supportHtml: false },
    stdioOptions: {
      stdout: () => undefined,
      stderr: (stream) => {
        stream.on('data', (text: Buffer | string) => {
          for (const line of text.toString().split('\n')) {
            if (line.trim() !== '') {
              hooks.log.info(`[server] ${line.trimEnd()}`);
            }
          }
        });
      },
    },
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => {
        hooks.closed();
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    },
    // `Server.start` reports a failed start; the library would show it a second time.
    initializationFailedHandler: () => false,
    middleware: {
      window: {
        showDocument: async (params, token, next) => {
          const uri = vscode.Uri.parse(params.uri, true);
          if (uri.scheme !== 'codeinterp') {
            return next(params, token);
          }
          return hooks.showVirtual(uri, params.takeFocus ?? false).then(
            () => ({ success: true }),
            () => ({ success: false }),
          );
        },
      },
      workspace: {
        configuration: (params) => params.items.map((item) => configurationItem(item, hooks.keys)),
        didChangeConfiguration: async () => {
          await client.sendNotification('workspace/didChangeConfiguration', {
            settings: { codeinterp: mergedSettings(hooks.keys, undefined) },
          });
        },
      },
      handleWorkDoneProgress: (token, params, next) => {
        hooks.progress(token, params);
        // The library keeps the token until the end; it shows nothing for a progress that never began.
        if (params.kind === 'end') {
          next(token, params);
        }
      },
      provideHover: async (document, position, token, next) => {
        const hover = await next(document, position, token);
        return hover ? withInlineImages(hover, hooks.readArtifact) : hover;
      },
      provideInlayHints: async (document, range, token, next) => {
        const hints = await next(document, range, token);
        return hints?.map((hint) => hooks.hintCommands.bind(hint));
      },
      resolveInlayHint: async (hint, token, next) => {
        const resolved = await next(hint, token);
        return resolved ? hooks.hintCommands.bind(resolved) : resolved;
      },
    },
  };
  const client = new Client('codeinterp', 'Code Interpreter', spawnServer, options);
  client.registerFeature(new OwnCapabilities());
  return client;
}

function configurationItem(item: ConfigurationItem, keys: readonly string[]): unknown {
  const values = mergedSettings(keys, item.scopeUri === undefined ? undefined : vscode.Uri.parse(item.scopeUri));
  const section = item.section ?? '';
  if (section === '') {
    return { codeinterp: values };
  }
  if (section === 'codeinterp') {
    return values;
  }
  return section.startsWith('codeinterp.') ? (select(values, section.slice('codeinterp.'.length)) ?? null) : null;
}

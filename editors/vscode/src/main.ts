/**
 * Entry: builds the parts, wires them, and starts the server without waiting for it.
 *
 * Architecture: `lsp_ext` is the protocol; `server` owns the process, `client` the connection; `runs` is the model that the
 * views in `views/` show; `virtual_fs` serves reports and charts, `reports` places them; `commands/` is what a person does.
 * Files without a `vscode` import hold the logic that the unit tests cover.
 */
import * as vscode from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';
import type { createClient } from './client';
import { registerCommands } from './commands';
import { currentUri } from './commands/kernel';
import { keys } from './config';
import { type Ctx, normalRow } from './ctx';
import { HintCommands } from './hint_commands';
import { methods, type RunChanged, SCHEME } from './lsp_ext';
import { Reports } from './reports';
import { Runs } from './runs';
import { Secrets } from './secrets';
import { Server } from './server';
import { isMachine } from './settings';
import { parsePath } from './uris';
import { Outputs } from './views/outputs';
import { ProgressView } from './views/progress';
import { RunsTree } from './views/runs_tree';
import { StatusBar } from './views/status';
import { VariablesTree } from './views/variables_tree';
import { VirtualFs } from './virtual_fs';

let server: Server | undefined;

/** Called by VS Code once its window is up. */
export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel('Code Interpreter', { log: true });
  const settingKeys = keys(context.extension);
  const secrets = new Secrets(context.secrets);
  const runs = new Runs();

  const theServer = new Server(context, log, (spawnServer) => connect(spawnServer), () => secrets.environment());
  server = theServer;
  const reloadRuns = async (): Promise<void> => {
    if (theServer.running() !== undefined) {
      runs.replace((await theServer.execute('codeinterp.listRuns', {})).map(normalRow));
    }
  };
  const fs = new VirtualFs(theServer, runs, reloadRuns);
  const reports = new Reports(runs, (run) => fs.touchReport(run));
  const readArtifact = (uri: vscode.Uri): Promise<Uint8Array> => fs.readFile(uri);
  const hintCommands = new HintCommands(vscode.commands);
  const outputs = new Outputs(context.extensionUri, readArtifact, () => reports.outputColumn());
  const status = new StatusBar(theServer, runs);
  const variables = new VariablesTree(theServer, () => currentUri(ctx), log);
  const progress = new ProgressView(
    (work) => status.setWork(work),
    (token) => void theServer.running()?.sendNotification(methods.cancelProgress, { token }),
  );
  const ctx: Ctx = { context, log, server: theServer, runs, fs, reports, outputs, status, secrets, reloadRuns, refreshVariables: () => variables.refresh() };

  async function connect(spawnServer: Parameters<typeof createClient>[0]): Promise<LanguageClient> {
    // A bundle of its own: the client library is most of the code, and activation does not wait for it.
    const library = await import('./client.js');
    const client = library.createClient(spawnServer, {
      log,
      keys: settingKeys,
      closed: () => theServer.connectionClosed(),
      readArtifact,
      hintCommands,
      progress: (token, value) => progress.update(token, value),
      showVirtual: (uri, takeFocus) => showVirtual(ctx, uri, takeFocus),
    });
    client.onNotification(methods.runChanged, (change: RunChanged) => {
      void runChanged(ctx, normalRow(change));
    });
    client.onRequest(methods.textDocumentContentRefresh, ({ uri }: { uri: string }) => {
      fs.documentChanged(vscode.Uri.parse(uri));
      return null;
    });
    library.registerChat(client, log);
    return client;
  }

  context.subscriptions.push(
    log,
    theServer,
    fs,
    reports,
    hintCommands,
    status,
    progress,
    vscode.workspace.registerFileSystemProvider(SCHEME, fs, { isReadonly: true, isCaseSensitive: true }),
    vscode.window.registerTreeDataProvider('codeinterp.runs', disposeWith(context, new RunsTree(runs, readArtifact))),
    vscode.window.registerTreeDataProvider('codeinterp.variables', disposeWith(context, variables)),
    registerCommands(ctx),
    vscode.workspace.onDidOpenTextDocument((document) => fs.opened(document)),
    theServer.onState((state) => {
      if (state === 'running') {
        fs.allChanged();
        void Promise.all([reloadRuns(), status.refresh()]).catch((error: unknown) => log.warn(String(error)));
      } else {
        progress.clear();
        runs.interrupted();
        variables.refresh();
      }
    }),
    vscode.workspace.onDidChangeConfiguration((event) => void offerRestart(ctx, settingKeys, event)),
  );

  // Not awaited: activation ends here, the server comes up beside it.
  void theServer.ready().catch(() => undefined);
}

/** Called by VS Code when the window closes. */
export async function deactivate(): Promise<void> {
  await server?.stop();
}

function disposeWith<T extends vscode.Disposable>(context: vscode.ExtensionContext, part: T): T {
  context.subscriptions.push(part);
  return part;
}

async function runChanged(ctx: Ctx, change: RunChanged): Promise<void> {
  const ended = ctx.runs.apply(change);
  ctx.fs.runChanged(change.run);
  if (ended || ctx.runs.get(change.run)?.question === '') {
    await ctx.reloadRuns();
  }
  if (ended) {
    ctx.refreshVariables();
    await ctx.status.refresh();
  }
}

/** What the server asks to show: a report in its preview, an artifact where its kind is seen best, a step as text. */
async function showVirtual(ctx: Ctx, uri: vscode.Uri, takeFocus: boolean): Promise<void> {
  const target = parsePath(uri.path);
  if (target?.kind === 'report') {
    if (ctx.runs.get(target.run) === undefined) {
      await ctx.reloadRuns();
    }
    await ctx.reports.show(target.run, ctx.runs.get(target.run)?.uri ?? 'report', takeFocus);
  } else if (target?.kind === 'artifact') {
    await ctx.outputs.open(target.run, await ctx.fs.artifact(uri, target.run, target.name));
  } else {
    await vscode.window.showTextDocument(uri, { viewColumn: ctx.reports.outputColumn(), preserveFocus: !takeFocus });
  }
}

/** Settings that the server reads at its start take effect with the next one: at once while nothing could be lost. */
async function offerRestart(ctx: Ctx, all: readonly string[], event: vscode.ConfigurationChangeEvent): Promise<void> {
  const changed = all.filter((key) => isMachine(key) && key !== 'trace.server' && key !== 'editorModel' && event.affectsConfiguration(`codeinterp.${key}`));
  if (changed.length === 0) {
    return;
  }
  const kernels = ctx.status.known?.workspaces.some(({ state }) => /running|ready|busy|idle/i.test(state)) ?? false;
  if (ctx.runs.active().length === 0 && !kernels) {
    await ctx.server.restart().catch(() => undefined);
    return;
  }
  const restart = vscode.l10n.t('Restart Now');
  const text = vscode.l10n.t('The changed settings of Code Interpreter take effect when its server starts again. Variables of the kernel are lost by that.');
  if ((await vscode.window.showInformationMessage(text, restart)) === restart) {
    await ctx.server.restart().catch(() => undefined);
  }
}

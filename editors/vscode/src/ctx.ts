/**
 * What the commands work with: the parts of the extension, wired together in `main.ts`.
 */
import * as vscode from 'vscode';
import type { RunRow, ServerCommands } from './lsp_ext';
import type { Reports } from './reports';
import type { Runs } from './runs';
import type { Secrets } from './secrets';
import { message } from './messages';
import { type Server, ShownError } from './server';
import type { Outputs } from './views/outputs';
import type { StatusBar } from './views/status';
import type { VirtualFs } from './virtual_fs';

/** The commands that answer with a run. */
type StartCommand = 'codeinterp.analyzeFile' | 'codeinterp.askSelection' | 'codeinterp.runSelection' | 'codeinterp.followUp' | 'codeinterp.rerun';

/** The extension's parts. */
export interface Ctx {
  context: vscode.ExtensionContext;
  log: vscode.LogOutputChannel;
  server: Server;
  runs: Runs;
  fs: VirtualFs;
  reports: Reports;
  outputs: Outputs;
  status: StatusBar;
  secrets: Secrets;
  /** Fetches the list of runs. */
  reloadRuns(): Promise<void>;
  /** Asks the kernel for its variables again. */
  refreshVariables(): void;
}

/** One spelling for a URI, whoever wrote it. */
export function normalUri(uri: string): string {
  return vscode.Uri.parse(uri).toString();
}

/** A row with its URIs in one spelling. */
export function normalRow<T extends Pick<RunRow, 'uri'>>(row: T): T {
  return { ...row, uri: row.uri === undefined || row.uri === null ? null : normalUri(row.uri) };
}

/** Starts a run and shows its report, which fills as the run goes on. */
export async function startRun<K extends StartCommand>(ctx: Ctx, command: K, argument: ServerCommands[K][0], source: string, question: string): Promise<void> {
  const started = await ctx.server.execute(command, argument);
  const uri = normalUri(source);
  ctx.runs.add({ run: started.run, status: 'queued', question, uri, document: started.document, artifacts: [] });
  await ctx.reports.show(started.run, uri);
}

/** Runs a command's body; shows what went wrong unless it was shown already or the person cancelled. */
export async function guarded(ctx: Ctx, body: () => Promise<void>): Promise<void> {
  try {
    await body();
  } catch (error) {
    if (error instanceof ShownError || error instanceof vscode.CancellationError) {
      return;
    }
    ctx.log.error(message(error));
    const log = vscode.l10n.t('Show Log');
    void vscode.window.showErrorMessage(message(error), log).then((choice) => {
      if (choice === log) {
        ctx.log.show();
      }
    });
  }
}

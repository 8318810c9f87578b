/**
 * Which run, which artifact.
 */
import * as vscode from 'vscode';
import type { Ctx } from '../ctx';
import type { Artifact } from '../lsp_ext';
import { type Run, statusIcon } from '../runs';
import { baseName, parsePath } from '../uris';

/**
 * The run that a command is about: the one named by its argument (a server's object, a tree node, a report's URI), the one
 * whose report is in front, the only one there is, or the one that the person picks.
 */
export async function chooseRun(ctx: Ctx, argument: unknown, placeHolder: string, among: (run: Run) => boolean = () => true): Promise<Run | undefined> {
  const named = runIdOf(argument);
  if (named !== undefined) {
    return find(ctx, named);
  }
  const active = ctx.reports.activeRun();
  const front = active === undefined ? undefined : await find(ctx, active).catch(() => undefined);
  if (front !== undefined && among(front)) {
    return front;
  }
  if (ctx.runs.newestFirst().length === 0) {
    await ctx.reloadRuns();
  }
  const runs = ctx.runs.newestFirst().filter(among);
  const [only] = runs;
  if (only === undefined) {
    void vscode.window.showInformationMessage(vscode.l10n.t('There is no such run yet. Analyze a file first.'));
    return undefined;
  }
  if (runs.length === 1) {
    return only;
  }
  const items = runs.map((run) => ({
    label: `$(${statusIcon(run.status)}) ${run.question || baseName(run.uri)}`,
    description: baseName(run.uri),
    run,
  }));
  return (await vscode.window.showQuickPick(items, { placeHolder, matchOnDescription: true }))?.run;
}

/** The artifact that a command is about. */
export async function chooseArtifact(ctx: Ctx, argument: unknown): Promise<{ run: Run; artifact: Artifact } | undefined> {
  const run = await chooseRun(ctx, argument, vscode.l10n.t('An output of which run?'), (candidate) => candidate.artifacts.length > 0);
  if (run === undefined) {
    return undefined;
  }
  const name = nameOf(argument);
  if (name !== undefined) {
    const uri = vscode.Uri.parse('codeinterp:/');
    return { run, artifact: await ctx.fs.artifact(uri, run.run, name) };
  }
  if (run.artifacts.length === 0) {
    await ctx.reloadRuns();
  }
  const artifacts = ctx.runs.get(run.run)?.artifacts ?? [];
  const items = artifacts.map((artifact) => ({ label: artifact.name, description: artifact.mime, artifact }));
  if (items.length === 0) {
    void vscode.window.showInformationMessage(vscode.l10n.t('This run made no charts or files.'));
    return undefined;
  }
  const choice = await vscode.window.showQuickPick(items, { placeHolder: vscode.l10n.t('Which one?') });
  return choice === undefined ? undefined : { run, artifact: choice.artifact };
}

async function find(ctx: Ctx, id: string): Promise<Run> {
  if (ctx.runs.get(id) === undefined) {
    await ctx.server.ready();
    await ctx.reloadRuns();
  }
  const run = ctx.runs.get(id);
  if (run === undefined) {
    throw new Error(vscode.l10n.t('The run {0} is not known any more.', id));
  }
  return run;
}

function runIdOf(argument: unknown): string | undefined {
  if (argument instanceof vscode.Uri) {
    return parsePath(argument.path)?.run;
  }
  return property(argument, 'run');
}

function nameOf(argument: unknown): string | undefined {
  return argument instanceof vscode.Uri ? undefined : property(argument, 'name');
}

function property(argument: unknown, key: string): string | undefined {
  if (typeof argument !== 'object' || argument === null) {
    return undefined;
  }
  const value = (argument as Record<string, unknown>)[key];
  return typeof value === 'string' ? value : undefined;
}

/**
 * Commands that start a run: on a file, on a selection, on an earlier run.
 */
import { stat } from 'node:fs/promises';
import * as vscode from 'vscode';
import { type Ctx, startRun } from '../ctx';
import type { Range } from '../lsp_ext';
import { baseName } from '../uris';
import { askQuestion } from './ask';
import { activeDocument, chooseFile } from './files';
import { chooseRun } from './choose';

/** VS Code hands no document larger than this (bytes) to extensions. */
const SYNC_LIMIT = 50 * 1024 * 1024;

/** Arguments of a lens, a hint or a code action: the server's own. */
interface FileArgument {
  uri: string;
  question?: string;
  files?: string[];
}

interface SelectionArgument {
  uri: string;
  range: Range;
  question?: string;
}

/** Analyze File: `argument` is a URI (explorer, editor title), the server's argument object, or nothing (palette). */
export async function analyzeFile(ctx: Ctx, argument: unknown, selected: unknown): Promise<void> {
  if (isObject<FileArgument>(argument, 'uri')) {
    await startRun(ctx, 'codeinterp.analyzeFile', argument, argument.uri, argument.question ?? '');
    return;
  }
  const uris = await targets(ctx, argument, selected);
  await start(ctx, uris, undefined);
}

/** Ask About File. */
export async function askFile(ctx: Ctx, argument: unknown, selected: unknown): Promise<void> {
  const uris = isObject<FileArgument>(argument, 'uri') ? [vscode.Uri.parse(argument.uri)] : await targets(ctx, argument, selected);
  const [first] = uris;
  if (first === undefined) {
    return;
  }
  const others = uris.length > 1 ? ` +${uris.length - 1}` : '';
  const question = await askQuestion(
    ctx.context.workspaceState,
    vscode.l10n.t('Ask about {0}', `${baseName(first.path)}${others}`),
    vscode.l10n.t('For example: which product sold best, and when?'),
  );
  if (question !== undefined) {
    await start(ctx, uris, question);
  }
}

/** Ask About Selection. */
export async function askSelection(ctx: Ctx, argument: unknown): Promise<void> {
  const selection = selectionOf(argument);
  if (selection === undefined) {
    return;
  }
  const lines = selection.range.end.line - selection.range.start.line + 1;
  const question =
    selection.question ??
    (await askQuestion(
      ctx.context.workspaceState,
      vscode.l10n.t('Ask about {0} selected line(s) of {1}', lines, baseName(selection.uri)),
      vscode.l10n.t('For example: why did March drop?'),
    ));
  if (question !== undefined) {
    await startRun(ctx, 'codeinterp.askSelection', { uri: selection.uri, range: selection.range, question }, selection.uri, question);
  }
}

/** Run Selection in Sandbox: no model, the selected Python itself. */
export async function runSelection(ctx: Ctx, argument: unknown): Promise<void> {
  const selection = selectionOf(argument);
  if (selection !== undefined) {
    const { uri, range } = selection;
    await startRun(ctx, 'codeinterp.runSelection', { uri, range }, uri, vscode.l10n.t('Run the selected code'));
  }
}

/** Follow Up: another question in the context of a run. */
export async function followUp(ctx: Ctx, argument: unknown): Promise<void> {
  const run = await chooseRun(ctx, argument, vscode.l10n.t('Follow up on which run?'));
  if (run === undefined) {
    return;
  }
  const question = isObject<{ question: string }>(argument, 'question')
    ? argument.question
    : await askQuestion(ctx.context.workspaceState, vscode.l10n.t('Follow up: {0}', run.question || baseName(run.uri)), vscode.l10n.t('Variables of the earlier run are still there.'));
  if (question !== undefined) {
    await startRun(ctx, 'codeinterp.followUp', { run: run.run, question }, run.uri, question);
  }
}

/** Re-run: the run's code on today's data, without a model. */
export async function rerun(ctx: Ctx, argument: unknown): Promise<void> {
  const run = await chooseRun(ctx, argument, vscode.l10n.t('Run which one again?'));
  if (run !== undefined) {
    await startRun(ctx, 'codeinterp.rerun', { run: run.run }, run.uri, run.question);
  }
}

async function start(ctx: Ctx, uris: vscode.Uri[], question: string | undefined): Promise<void> {
  const [first] = uris;
  if (first === undefined) {
    return;
  }
  await sayIfUnsynced(ctx, first);
  const files = uris.slice(1).map((uri) => uri.toString());
  await startRun(
    ctx,
    'codeinterp.analyzeFile',
    { uri: first.toString(), ...(question === undefined ? {} : { question }), ...(files.length > 0 ? { files } : {}) },
    first.toString(),
    question ?? '',
  );
}

async function sayIfUnsynced(ctx: Ctx, uri: vscode.Uri): Promise<void> {
  if (uri.scheme !== 'file' || activeDocument(ctx.runs)?.toString() !== uri.toString()) {
    return;
  }
  const size = await stat(uri.fsPath).then(
    (found) => found.size,
    () => 0,
  );
  if (size > SYNC_LIMIT) {
    void vscode.window.showInformationMessage(
      vscode.l10n.t('{0} is analyzed as it is on disk: it is too large for the editor to share what is not saved.', baseName(uri.path)),
    );
  }
}

async function targets(ctx: Ctx, argument: unknown, selected: unknown): Promise<vscode.Uri[]> {
  if (argument instanceof vscode.Uri) {
    const others = Array.isArray(selected) ? selected.filter((uri): uri is vscode.Uri => uri instanceof vscode.Uri) : [];
    // The file that was clicked comes first: the report is its.
    return [argument, ...others.filter((uri) => uri.toString() !== argument.toString())];
  }
  const chosen = await chooseFile(ctx.runs);
  return chosen === undefined ? [] : [chosen];
}

function selectionOf(argument: unknown): SelectionArgument | undefined {
  if (isObject<SelectionArgument>(argument, 'range')) {
    return argument;
  }
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined || editor.selection.isEmpty) {
    void vscode.window.showInformationMessage(vscode.l10n.t('Select some lines first.'));
    return undefined;
  }
  const { start: from, end } = editor.selection;
  return {
    uri: editor.document.uri.toString(),
    range: { start: { line: from.line, character: from.character }, end: { line: end.line, character: end.character } },
  };
}

function isObject<T>(value: unknown, key: keyof T & string): value is T {
  return typeof value === 'object' && value !== null && !(value instanceof vscode.Uri) && key in value;
}

/**
 * Which document a command is about.
 */
import * as vscode from 'vscode';
import { SCHEME } from '../lsp_ext';
import type { Runs } from '../runs';
import { baseName, parsePath } from '../uris';

const EXTENSIONS = ['csv', 'tsv', 'tab', 'psv', 'xlsx', 'xlsm', 'xls', 'ods', 'json', 'jsonl', 'ndjson', 'parquet', 'feather', 'arrow', 'dta', 'sav', 'txt'];
/** How many files the picker lists. */
const PICKER_LIMIT = 500;

/** True for a file that has data by its name. */
export function isDataFile(uri: vscode.Uri): boolean {
  return EXTENSIONS.includes(uri.path.toLowerCase().split('.').pop() ?? '');
}

/**
 * The document in front: of the text editor, or of whatever else shows a file (a binary or custom editor); for a report or
 * chart in front, the file that it is about.
 */
export function activeDocument(runs: Runs): vscode.Uri | undefined {
  const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
  const uri = input instanceof vscode.TabInputText || input instanceof vscode.TabInputCustom ? input.uri : vscode.window.activeTextEditor?.document.uri;
  if (uri?.scheme !== SCHEME) {
    return uri;
  }
  const source = runs.get(parsePath(uri.path)?.run ?? '')?.uri;
  return source === undefined ? undefined : vscode.Uri.parse(source);
}

/** The data file in front, or the one that the person picks from the workspace; `undefined` when they pick none. */
export async function chooseFile(runs: Runs): Promise<vscode.Uri | undefined> {
  const active = activeDocument(runs);
  if (active !== undefined && (isDataFile(active) || active.scheme === 'untitled')) {
    return active;
  }
  const found = await vscode.workspace.findFiles(`**/*.{${EXTENSIONS.filter((name) => name !== 'txt').join(',')}}`, '**/node_modules/**', PICKER_LIMIT);
  const browse = { label: `$(folder-opened) ${vscode.l10n.t('Browse…')}`, uri: undefined };
  const items = found
    .map((uri) => ({ label: baseName(uri.path), description: vscode.workspace.asRelativePath(uri), uri }))
    .sort((a, b) => a.description.localeCompare(b.description));
  const choice = await vscode.window.showQuickPick([...items, browse], {
    placeHolder: vscode.l10n.t('Which file shall be analyzed?'),
    matchOnDescription: true,
  });
  if (choice === undefined || choice.uri !== undefined) {
    return choice?.uri;
  }
  const opened = await vscode.window.showOpenDialog({ canSelectMany: false, filters: { [vscode.l10n.t('Data files')]: EXTENSIONS } });
  return opened?.[0];
}

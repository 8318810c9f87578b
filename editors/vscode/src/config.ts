/**
 * The settings of the section `codeinterp`, read from VS Code and handed to the server.
 */
import * as vscode from 'vscode';
import { isMachine, nested, type Nested } from './settings';

/** All keys of the section, without its name. */
export function keys(extension: vscode.Extension<unknown>): string[] {
  const manifest = extension.packageJSON as { contributes: { configuration: { properties: Record<string, unknown> }[] } };
  return manifest.contributes.configuration.flatMap((group) => Object.keys(group.properties)).map((key) => key.slice('codeinterp.'.length));
}

/** What a person has set for themselves: the user settings, for `initializationOptions`. */
export function userSettings(all: readonly string[]): Nested {
  const section = vscode.workspace.getConfiguration('codeinterp');
  return nested(all, (key) => section.inspect(key)?.globalValue);
}

/**
 * What is set anywhere, workspace and folder included, for `workspace/configuration`. Machine settings come from the user
 * alone (VS Code ignores them in workspace files).
 */
export function mergedSettings(all: readonly string[], scope: vscode.Uri | undefined): Nested {
  const section = vscode.workspace.getConfiguration('codeinterp', scope);
  return nested(all, (key) => {
    const found = section.inspect(key);
    return isMachine(key) ? found?.globalValue : (found?.workspaceFolderValue ?? found?.workspaceValue ?? found?.globalValue);
  });
}

/** Opens the settings editor with a search. */
export async function openSettings(query: string): Promise<void> {
  // Most of our settings belong to the machine where the server runs: in a remote window that is the remote's tab.
  if (vscode.env.remoteName !== undefined) {
    await vscode.commands.executeCommand('workbench.action.openRemoteSettings', { query });
  } else {
    await vscode.commands.executeCommand('workbench.action.openSettings', query);
  }
}

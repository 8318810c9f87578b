/**
 * The key of a model provider, in VS Code's secret storage. It reaches the server by its environment only: never by settings,
 * arguments or the protocol.
 */
import * as vscode from 'vscode';

const KEY = 'codeinterp.apiKey';

/** Keeps one key. */
export class Secrets {
  constructor(private readonly storage: vscode.SecretStorage) {}

  /** What to add to the server's environment. */
  async environment(): Promise<Record<string, string>> {
    const key = await this.storage.get(KEY);
    return key === undefined || key === '' ? {} : { CODEINTERP_API_KEY: key };
  }

  /** Asks for a key and stores it. False when the person gave none. */
  async ask(): Promise<boolean> {
    const key = await vscode.window.showInputBox({
      title: vscode.l10n.t('API key for Code Interpreter'),
      prompt: vscode.l10n.t("It is kept in the editor's secret storage and given to the server alone."),
      password: true,
      ignoreFocusOut: true,
    });
    if (key === undefined || key.trim() === '') {
      return false;
    }
    await this.storage.store(KEY, key.trim());
    return true;
  }

  /** Forgets the key. */
  async clear(): Promise<void> {
    await this.storage.delete(KEY);
  }
}

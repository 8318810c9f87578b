/**
 * The choice among the language models that the editor offers.
 */
import * as vscode from 'vscode';

/** Lets the person choose among the editor's models, and remembers the choice in the settings. */
export async function pickEditorModel(models: readonly vscode.LanguageModelChat[]): Promise<vscode.LanguageModelChat> {
  const items = models.map((model) => ({ label: model.name, description: model.vendor, model }));
  const choice = await vscode.window.showQuickPick(items, {
    placeHolder: vscode.l10n.t("Which of the editor's language models shall Code Interpreter use?"),
    ignoreFocusOut: true,
  });
  if (choice === undefined) {
    throw new vscode.CancellationError();
  }
  await vscode.workspace.getConfiguration('codeinterp').update('editorModel', keyOf(choice.model), vscode.ConfigurationTarget.Global);
  return choice.model;
}

/** What the setting `editorModel` holds for a model. */
export function keyOf(model: vscode.LanguageModelChat): string {
  return `${model.vendor}/${model.family}`;
}

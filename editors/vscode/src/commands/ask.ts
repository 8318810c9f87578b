/**
 * The question box, with recent questions.
 */
import * as vscode from 'vscode';
import { remember, sanitize } from '../questions';

const STORED = 'codeinterp.questions';

/** Asks for a question. `undefined` when the person leaves the box. */
export function askQuestion(state: vscode.Memento, title: string, placeholder: string): Promise<string | undefined> {
  const recent = sanitize(state.get(STORED));
  const box = vscode.window.createQuickPick<vscode.QuickPickItem & { question: string }>();
  const history = recent.map((question) => ({ label: question, iconPath: new vscode.ThemeIcon('history'), question }));
  box.title = title;
  box.placeholder = placeholder;
  box.ignoreFocusOut = true;
  box.items = history;
  return new Promise((resolve) => {
    let answer: string | undefined;
    box.onDidChangeValue((value) => {
      // What is typed stands first, so that Enter asks it rather than an old question that resembles it.
      const typed = value.trim();
      const ask = { label: typed, description: vscode.l10n.t('Press Enter to ask'), iconPath: new vscode.ThemeIcon('comment'), alwaysShow: true, question: typed };
      box.items = typed === '' ? history : [ask, ...history.filter(({ question }) => question !== typed)];
    });
    box.onDidAccept(() => {
      answer = box.selectedItems[0]?.question ?? box.activeItems[0]?.question ?? (box.value.trim() === '' ? undefined : box.value.trim());
      if (answer !== undefined) {
        box.hide();
      }
    });
    box.onDidHide(() => {
      box.dispose();
      if (answer !== undefined) {
        void state.update(STORED, remember(recent, answer));
      }
      resolve(answer);
    });
    box.show();
  });
}

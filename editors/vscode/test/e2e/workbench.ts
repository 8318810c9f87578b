/**
 * A window of a real VS Code in a real browser, and what a person does in it.
 */
import { mkdirSync } from 'node:fs';
import * as path from 'node:path';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { Editor, type Setup } from './editor';
import { answerBox, closeOverlays, contextMenu, pickEntry, quickInput, runCommand } from './menus';
import { type Parts, screens } from './parts';
import { ATTEMPT, clickUntil, eventually, gone, PATIENCE, seen } from './patience';
import * as webviews from './webviews';

/** One window on an editor's workspace. */
export class Workbench {
  private constructor(
    readonly page: Page,
    readonly editor: Editor,
    private readonly browser: Browser,
  ) {}

  /** Starts an editor with the packaged extension, and a window on its workspace. */
  static async start(parts: Parts, setup: Setup): Promise<Workbench> {
    const editor = await Editor.start(parts, setup);
    const browser = await chromium.launch({
      executablePath: parts.chromium,
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    });
    const page = await openWindow(browser, editor);
    return new Workbench(page, editor, browser);
  }

  /** A second window on the same workspace. It is closed with the first one, or by its `close`. */
  async another(): Promise<Workbench> {
    return new Workbench(await openWindow(this.browser, this.editor), this.editor, this.browser);
  }

  /** Closes this window alone. */
  async close(): Promise<void> {
    // As a person's browser does: the page is told before it goes. Else the editor would wait for it to come back.
    await this.page.goto('about:blank');
    await this.page.context().close();
  }

  /** Ends the editor and everything it started, and removes its folders. */
  async stop(): Promise<void> {
    await this.browser.close();
    await this.editor.stop();
  }

  /** The workspace folder. */
  get folder(): string {
    return this.editor.folder;
  }

  /** A picture of the whole window, to be looked at. */
  async screenshot(name: string): Promise<string> {
    mkdirSync(screens, { recursive: true });
    const file = path.join(screens, `${name}.png`);
    await this.page.screenshot({ path: file });
    return file;
  }

  /** Brings the window back to where a scenario may begin: nothing lies over it. After a failure no run is at work either. */
  async calm(failed: boolean): Promise<void> {
    await closeOverlays(this.page);
    if (failed) {
      if (await this.statusItem().locator('.codicon-loading').isVisible()) {
        await this.command('Code Interpreter: Cancel Run');
        await closeOverlays(this.page);
      }
      await this.command('Notifications: Clear All Notifications');
      await this.command('View: Close All Editors');
      const discard = this.page.locator('.monaco-dialog-box .monaco-button', { hasText: "Don't Save" });
      if (await seen(discard, 1_000)) {
        await clickUntil(discard, {}, () => gone(discard));
      }
    }
  }

  /** Runs a command from the palette. */
  command(title: string): Promise<void> {
    return runCommand(this.page, title);
  }

  /** Runs a command that asks a question, and answers it. */
  async ask(title: string, question: string): Promise<void> {
    await this.command(title);
    await answerBox(this.page, question);
  }

  /** Chooses an entry of the open quick pick. */
  pick(label: string): Promise<void> {
    return pickEntry(this.page, label);
  }

  /** The box of the open quick pick. */
  quickInput(): Locator {
    return quickInput(this.page);
  }

  /** Opens a file of the workspace in the editor, or brings its tab to the front. */
  async open(name: string): Promise<void> {
    const tab = this.tab(name).first();
    await eventually(`opening ${name}`, async () => {
      if (await tab.isVisible()) {
        await tab.click({ timeout: ATTEMPT });
      } else {
        await this.showExplorer();
        await this.explorerRow(name).dblclick({ timeout: ATTEMPT });
      }
      return seen(this.focusedTab(name));
    });
  }

  /** Brings the explorer to the side bar. */
  async showExplorer(): Promise<void> {
    await this.showView('Explorer', this.page.locator('.explorer-folders-view'));
  }

  /** Brings our views to the side bar. */
  async showRuns(): Promise<void> {
    await this.showView('Code Interpreter', this.page.locator('.pane-header', { hasText: 'Runs' }));
  }

  private async showView(title: string, content: Locator): Promise<void> {
    // A click on the icon of what is shown already would hide it.
    const icon = this.page.locator(`.activitybar .action-item [aria-label^="${title}"]`).first();
    await eventually(`the view ${title}`, async () => {
      if (!(await content.first().isVisible())) {
        await icon.click({ timeout: ATTEMPT });
      }
      return seen(content);
    });
  }

  /** The row of a file in the explorer. */
  explorerRow(name: string): Locator {
    return this.page.locator(`.explorer-folders-view .monaco-list-row[aria-label^="${name}"]`).first();
  }

  /** A row of a tree in the side bar, by its words. */
  row(text: string): Locator {
    return this.page.locator('.pane-body .monaco-list-row', { hasText: text }).first();
  }

  /** Unfolds a row of a tree. */
  async unfold(row: Locator): Promise<void> {
    await eventually('unfolding a row', async () => {
      if ((await row.getAttribute('aria-expanded', { timeout: ATTEMPT })) !== 'true') {
        await row.locator('.monaco-tl-twistie').click({ timeout: ATTEMPT });
      }
      return (await row.getAttribute('aria-expanded', { timeout: ATTEMPT })) === 'true';
    });
  }

  /** A tab by its whole label. */
  tab(label: string): Locator {
    return this.tabs('.editor-group-container .tab', label);
  }

  /** A tab that is in front of its group. */
  activeTab(label: string): Locator {
    return this.tabs('.tab.active', label).first();
  }

  /** The tab that has the focus. */
  focusedTab(label: string): Locator {
    return this.tabs('.editor-group-container.active .tab.active', label).first();
  }

  private tabs(selector: string, label: string): Locator {
    return this.page.locator(selector, { hasText: new RegExp(`^${label.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`) });
  }

  /** Clicks an entry of a file's context menu in the explorer. */
  async explorerMenu(name: string, entry: string): Promise<void> {
    await this.showExplorer();
    await contextMenu(this.page, this.explorerRow(name), entry);
  }

  /** Puts the cursor into a line of the text in front, by the line's words. */
  async clickLine(text: string): Promise<void> {
    await this.page.locator('.editor-group-container.active .view-line', { hasText: text }).first().click();
  }

  /** Waits until a condition holds that no element tells. */
  until(what: string, holds: () => boolean): Promise<void> {
    return eventually(what, () => Promise.resolve(holds()));
  }

  /** A part of a result hint, by its words. */
  hint(words: string): Locator {
    // The editor draws spaces of hints as no-break spaces.
    const pattern = new RegExp(`^${words.replace(/ /g, '[ \\u00a0]')}([ \\u00a0]·[ \\u00a0])?$`);
    return this.page.locator('.view-lines span', { hasText: pattern }).last();
  }

  /** Follows a part of a result hint to the tab that it opens. */
  async followHint(words: string, label: string): Promise<void> {
    await eventually(`the hint ${words}`, async () => {
      await this.page.keyboard.down('Control');
      try {
        await this.hint(words).click({ timeout: ATTEMPT });
      } finally {
        // Given up or not: a pressed key would turn all that follows into something else.
        await this.page.keyboard.up('Control');
      }
      return seen(this.activeTab(label));
    });
  }

  /** Rests the pointer on an element until a hover says something. */
  async hoverUntil(target: Locator, text: string | RegExp, position?: { x: number; y: number }): Promise<void> {
    const hover = this.page.locator('.monaco-hover', { hasText: text });
    await eventually(`a hover that says ${String(text)}`, async () => {
      await target.hover({ timeout: ATTEMPT, ...(position === undefined ? {} : { position }) });
      if (await seen(hover)) {
        return true;
      }
      await this.page.mouse.move(0, 0);
      return false;
    });
  }

  /** Our item in the status bar. */
  statusItem(): Locator {
    return this.page.locator('#codeinterp\\.codeinterp\\.codeinterp\\.status, .statusbar-item[id*="codeinterp.status"]').first();
  }

  /** Waits until a run is at work. */
  async busy(): Promise<void> {
    await this.statusItem().locator('.codicon-loading').waitFor();
  }

  /** Waits until no run is at work; tells how long that took, in milliseconds. */
  async idle(): Promise<number> {
    const began = Date.now();
    await this.statusItem().locator('.codicon-loading').waitFor({ state: 'detached' });
    return Date.now() - began;
  }

  /** A notification that says something. */
  notification(text: string | RegExp): Locator {
    return this.page.locator('.notification-list-item', { hasText: text }).first();
  }

  /** Fails where the editor complained about a click that reached no command: whoever clicked again would not have noticed. */
  async everyClickHadItsCommand(): Promise<void> {
    const complaint = this.page.locator('.notification-list-item', { hasText: /command .*not found/i }).first();
    if (await complaint.isVisible()) {
      throw new Error(`the editor says: ${await complaint.innerText()}`);
    }
  }

  /** Waits until a webview shows an element that matches, with the text where one is given. */
  shows(selector: string, text?: string | RegExp): Promise<void> {
    return webviews.shows(this.page, selector, text);
  }

  /** Waits until the picture of an element of a webview has at least `least` pixels of a shade. */
  hasPixels(selector: string, least: number, shade?: webviews.Shade): Promise<void> {
    return webviews.hasPixels(this.page, selector, least, shade);
  }
}

async function openWindow(browser: Browser, editor: Editor): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  await page.goto(`${editor.address}/?folder=${encodeURIComponent(editor.folder)}`);
  // The theme comes from an extension: once it is there, extensions are known.
  const up = page.locator('.monaco-workbench.vs-dark .part.statusbar');
  if (!(await seen(up, PATIENCE))) {
    await page.reload();
    await up.waitFor();
  }
  return page;
}

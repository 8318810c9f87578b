/**
 * A real VS Code in a real browser: starts it for a folder with given settings, and does what a person does in it.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { type Browser, chromium, type Frame, type Locator, type Page } from 'playwright-core';
import { type Parts, root, screens } from './parts';

/** How long a thing may take to appear, in milliseconds: starting on a busy machine included. */
export const PATIENCE = Number(process.env['CODEINTERP_PATIENCE_MS'] ?? 60_000);

/** What a workbench is started with. */
export interface Setup {
  /** User settings, added to quiet ones. */
  settings: Record<string, unknown>;
  /** Environment of the editor, and so of the server. */
  env?: Record<string, string>;
  /** Files of the workspace, by relative path. */
  files: Record<string, string | Buffer>;
  /** Keep the question whether the workspace is trusted. */
  untrusted?: boolean;
  /** Packages of further extensions. */
  extensions?: string[];
  /** Further arguments of the editor. */
  args?: string[];
}

const QUIET = {
  'workbench.startupEditor': 'none',
  'workbench.colorTheme': 'Default Dark Modern',
  'workbench.tips.enabled': false,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'window.commandCenter': false,
  'chat.disableAIFeatures': false,
  'chat.commandCenter.enabled': false,
  'extensions.ignoreRecommendations': true,
  'git.enabled': false,
  'update.mode': 'none',
  'editor.minimap.enabled': false,
  'editor.hover.delay': 100,
};

/** One editor window on one folder. */
export class Workbench {
  private constructor(
    readonly page: Page,
    /** The workspace folder. */
    readonly folder: string,
    private readonly home: string,
    private readonly browser: Browser,
    private readonly process: ChildProcess,
    private readonly output: string[],
  ) {}

  /** Starts an editor with the packaged extension. */
  static async start(parts: Parts, setup: Setup): Promise<Workbench> {
    const home = mkdtempSync(path.join(tmpdir(), 'codeinterp-vscode-'));
    const folder = path.join(home, 'workspace');
    for (const [name, content] of Object.entries(setup.files)) {
      const file = path.join(folder, name);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, content);
    }
    const data = path.join(home, 'data');
    const settings = JSON.stringify({ ...QUIET, ...setup.settings });
    for (const kind of ['User', 'Machine']) {
      mkdirSync(path.join(data, kind), { recursive: true });
      writeFileSync(path.join(data, kind, 'settings.json'), settings);
    }
    const extensions = path.join(home, 'extensions');
    for (const vsix of [path.join(root, 'codeinterp.vsix'), ...(setup.extensions ?? [])]) {
      const installed = spawnSync(parts.node, [parts.codeServer, '--user-data-dir', data, '--extensions-dir', extensions, '--install-extension', vsix], { encoding: 'utf8' });
      if (installed.status !== 0) {
        throw new Error(`The extension could not be installed: ${installed.stdout}${installed.stderr}`);
      }
    }
    const port = await freePort();
    const args = ['--auth', 'none', '--bind-addr', `127.0.0.1:${port}`, '--user-data-dir', data, '--extensions-dir', extensions, '--disable-telemetry', '--disable-update-check'];
    const child = spawn(parts.node, [parts.codeServer, ...args, ...(setup.untrusted === true ? [] : ['--disable-workspace-trust']), ...(setup.args ?? []), folder], {
      env: { ...process.env, XDG_STATE_HOME: path.join(home, 'state'), ...setup.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const output: string[] = [];
    await listening(child, output);
    const browser = await chromium.launch({
      executablePath: parts.chromium,
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    });
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    page.setDefaultTimeout(PATIENCE);
    await page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(folder)}`);
    // The theme comes from an extension: once it is there, extensions are known.
    await page.waitForSelector('.monaco-workbench.vs-dark .part.statusbar').catch(async () => {
      await page.reload();
      await page.waitForSelector('.monaco-workbench.vs-dark .part.statusbar');
    });
    return new Workbench(page, folder, home, browser, child, output);
  }

  /** Ends the editor and everything it started, and removes its folders. */
  async stop(): Promise<void> {
    await this.browser.close();
    const { pid } = this.process;
    if (this.process.exitCode === null && pid !== undefined) {
      const ended = new Promise((resolve) => this.process.once('exit', resolve));
      process.kill(-pid, 'SIGTERM');
      await ended;
    }
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }

  /** What the editor's process printed. */
  get log(): string {
    return this.output.join('');
  }

  /** A picture of the whole window, to be looked at. */
  async screenshot(name: string): Promise<string> {
    mkdirSync(screens, { recursive: true });
    const file = path.join(screens, `${name}.png`);
    await this.page.screenshot({ path: file });
    return file;
  }

  /** Runs a command from the palette. */
  async command(title: string): Promise<void> {
    const row = this.page.locator('.quick-input-list .monaco-list-row', { hasText: title }).first();
    const deadline = Date.now() + PATIENCE;
    // The palette lists what is there when it opens: a window that is still coming up may know our commands a moment later.
    for (let there = false; !there; ) {
      await this.page.keyboard.press('F1');
      const input = this.page.locator('.quick-input-widget input[type=text]');
      await input.waitFor();
      await input.fill(`>${title}`);
      there = await row.waitFor({ timeout: Date.now() > deadline ? 1 : 3_000 }).then(
        () => true,
        () => false,
      );
      if (!there) {
        await this.page.keyboard.press('Escape');
        if (Date.now() > deadline) {
          throw new Error(`The palette does not know "${title}"`);
        }
      }
    }
    await row.click();
  }

  /** Chooses an entry of the open quick pick. */
  async pick(label: string): Promise<void> {
    await this.page.locator('.quick-input-list .monaco-list-row', { hasText: label }).first().click();
  }

  /** Answers the open question box. */
  async answer(text: string): Promise<void> {
    const input = this.page.locator('.quick-input-widget input[type=text]');
    await input.waitFor();
    await input.fill(text);
    await this.page.locator('.quick-input-list .monaco-list-row', { hasText: text }).first().waitFor();
    await this.page.keyboard.press('Enter');
  }

  /** Opens a file of the workspace in the editor. */
  async open(name: string): Promise<void> {
    await this.explorerRow(name).dblclick();
    await this.tab(name).waitFor();
  }

  /** The row of a file in the explorer. */
  explorerRow(name: string): Locator {
    return this.page.locator('.explorer-folders-view .monaco-list-row', { hasText: name }).first();
  }

  /** A tab by its label. */
  tab(label: string): Locator {
    return this.page.locator('.tabs-container .tab', { hasText: label });
  }

  /** Clicks an entry of a file's context menu in the explorer. */
  async explorerMenu(name: string, entry: string): Promise<void> {
    await this.explorerRow(name).click({ button: 'right' });
    await this.page.locator('.monaco-menu .action-label', { hasText: entry }).first().click();
  }

  /** Waits until a condition holds that no element tells. */
  async until(holds: () => boolean): Promise<void> {
    const deadline = Date.now() + PATIENCE;
    while (!holds()) {
      if (Date.now() > deadline) {
        throw new Error('It did not come true in time');
      }
      await this.page.waitForTimeout(100);
    }
  }

  /** A part of a result hint, by its words. */
  hint(words: string): Locator {
    // The editor draws spaces of hints as no-break spaces.
    const pattern = new RegExp(`^${words.replace(/ /g, '[ \\u00a0]')}([ \\u00a0]·[ \\u00a0])?$`);
    return this.page.locator('.view-lines span', { hasText: pattern }).last();
  }

  /** Our item in the status bar. */
  statusItem(): Locator {
    return this.page.locator('#codeinterp\\.codeinterp\\.codeinterp\\.status, .statusbar-item[id*="codeinterp.status"]').first();
  }

  /** The frame of a webview whose document has something that matches the selector. */
  async frameWith(selector: string): Promise<Frame> {
    const deadline = Date.now() + PATIENCE;
    for (;;) {
      for (const frame of this.page.frames()) {
        const count = await frame.locator(selector).count().catch(() => 0);
        if (count > 0 && frame !== this.page.mainFrame()) {
          return frame;
        }
      }
      if (Date.now() > deadline) {
        throw new Error(`No webview shows ${selector}`);
      }
      await this.page.waitForTimeout(100);
    }
  }

  /** Waits until an element's picture has at least `least` pixels that `counts` accepts; tells how many there were. */
  async pixels(element: Locator, least: number, kind: 'colour' | 'dark' | 'light' = 'colour'): Promise<number> {
    const deadline = Date.now() + PATIENCE;
    for (;;) {
      // A report that still grows may take the element away while its picture is taken.
      const picture = await element.screenshot({ timeout: 5_000 }).catch(() => undefined);
      const found = picture === undefined ? 0 : await this.page.evaluate(countPixels, { picture: picture.toString('base64'), kind });
      if (found >= least) {
        return found;
      }
      if (Date.now() > deadline) {
        throw new Error(`Only ${found} of ${least} ${kind} pixels are there`);
      }
      await this.page.waitForTimeout(200);
    }
  }
}

/** Runs in the page: counts pixels of strong colour, of a dark or of a light shade. */
async function countPixels({ picture, kind }: { picture: string; kind: string }): Promise<number> {
  const bytes = Uint8Array.from(atob(picture), (char) => char.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext('2d');
  if (context === null) {
    return 0;
  }
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) {
    const [r = 0, g = 0, b = 0] = data.subarray(i, i + 3);
    const high = Math.max(r, g, b);
    const low = Math.min(r, g, b);
    if (kind === 'colour' ? high - low > 70 : kind === 'dark' ? high < 70 : low > 200) {
      count += 1;
    }
  }
  return count;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => (typeof address === 'object' && address !== null ? resolve(address.port) : reject(new Error('no port'))));
    });
  });
}

function listening(child: ChildProcess, output: string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const take = (data: Buffer): void => {
      output.push(data.toString());
      if (output.join('').includes('HTTP server listening')) {
        resolve();
      }
    };
    child.stdout?.on('data', take);
    child.stderr?.on('data', take);
    child.once('exit', (code) => reject(new Error(`The editor ended (${code ?? 'killed'}): ${output.join('')}`)));
  });
}

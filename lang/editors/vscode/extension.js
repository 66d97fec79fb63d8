// Starts `cdl lsp` and passes on what it answers.  Plain JavaScript over the editor's own interface: the
// package needs nothing to be downloaded.
'use strict';
const vscode = require('vscode');
const { spawn } = require('child_process');

const language = { language: 'cdl' };

// ---- messages: a length, an empty line, JSON ----

class Connection {
    constructor(path, onNote, onEnd) {
        this.id = 0;
        this.waiting = new Map();
        this.buffer = Buffer.alloc(0);
        this.onNote = onNote;
        this.ended = false;
        this.child = spawn(path, ['lsp'], { stdio: ['pipe', 'pipe', 'ignore'] });
        this.child.stdin.on('error', () => {});
        this.child.stdout.on('data', data => this.receive(data));
        this.child.on('error', error => this.end(onEnd, error));
        this.child.on('exit', code => this.end(onEnd, code ? new Error('it ended with ' + code) : null));
    }
    end(onEnd, error) {
        if (this.ended)
            return;
        this.ended = true;
        for (const answer of this.waiting.values())
            answer(null);
        this.waiting.clear();
        onEnd(error);
    }
    send(message) {
        if (this.ended)
            return;
        const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }), 'utf8');
        this.child.stdin.write('Content-Length: ' + body.length + '\r\n\r\n');
        this.child.stdin.write(body);
    }
    notify(method, params) {
        this.send({ method, params });
    }
    // the result; null also where the server reports an error, unless `strict`
    request(method, params, strict) {
        if (this.ended)
            return Promise.resolve(null);
        const id = ++this.id;
        return new Promise((resolve, reject) => {
            this.waiting.set(id, m => m && m.error && strict ? reject(new Error(m.error.message))
                                                             : resolve(m && m.result !== undefined ? m.result : null));
            this.send({ id, method, params });
        });
    }
    receive(data) {
        this.buffer = Buffer.concat([this.buffer, data]);
        for (;;) {
            const head = this.buffer.indexOf('\r\n\r\n');
            if (head < 0)
                return;
            const length = Number(/Content-Length: (\d+)/.exec(this.buffer.toString('ascii', 0, head))[1]);
            if (this.buffer.length < head + 4 + length)
                return;
            const message = JSON.parse(this.buffer.toString('utf8', head + 4, head + 4 + length));
            this.buffer = this.buffer.subarray(head + 4 + length);
            const answer = this.waiting.get(message.id);
            if (answer) {
                this.waiting.delete(message.id);
                answer(message);
            } else if (message.method)
                this.onNote(message.method, message.params);
        }
    }
}

// ---- from the protocol to the editor ----

const place = p => new vscode.Position(p.line, p.character);
const range = r => new vscode.Range(place(r.start), place(r.end));
const location = l => new vscode.Location(vscode.Uri.parse(l.uri), range(l.range));
const fromPlace = p => ({ line: p.line, character: p.character });
const fromRange = r => ({ start: fromPlace(r.start), end: fromPlace(r.end) });
const about = (document, position) => ({ textDocument: { uri: document.uri.toString() },
                                         position: position && fromPlace(position) });

function diagnostic(d) {
    const out = new vscode.Diagnostic(range(d.range), d.message, d.severity - 1);
    out.code = d.code;
    out.source = d.source;
    out.relatedInformation = (d.relatedInformation || []).map(
        r => new vscode.DiagnosticRelatedInformation(location(r.location), r.message));
    return out;
}

function symbol(s) {
    const out = new vscode.DocumentSymbol(s.name, s.detail || '', s.kind - 1, range(s.range), range(s.selectionRange));
    out.children = (s.children || []).map(symbol);
    return out;
}

function completion(i) {
    const out = new vscode.CompletionItem(i.label, i.kind - 1);
    out.detail = i.detail;
    out.documentation = i.documentation;
    out.range = range(i.textEdit.range);
    out.insertText = i.textEdit.newText;
    return out;
}

function workspaceEdit(e) {
    const out = new vscode.WorkspaceEdit();
    for (const [uri, edits] of Object.entries(e.changes))
        for (const one of edits)
            out.replace(vscode.Uri.parse(uri), range(one.range), one.newText);
    return out;
}

function signatureHelp(s) {
    const out = new vscode.SignatureHelp();
    out.signatures = s.signatures.map(one => {
        const info = new vscode.SignatureInformation(one.label, one.documentation);
        info.parameters = one.parameters.map(p => new vscode.ParameterInformation(p.label));
        return info;
    });
    out.activeSignature = s.activeSignature;
    out.activeParameter = s.activeParameter;
    return out;
}

// ---- the editor's questions; `server()` is the connection of the moment ----

function providers(server, legend) {
    const l = vscode.languages;
    const ask = async (method, params, make, strict) => {
        const r = await server().request('textDocument/' + method, params, strict);
        return r === null ? null : make(r);
    };
    const all = make => list => list.map(make);
    return [
        l.registerHoverProvider(language, { provideHover: (d, p) => ask('hover', about(d, p),
            h => new vscode.Hover(new vscode.MarkdownString(h.contents.value), range(h.range))) }),
        l.registerDefinitionProvider(language, { provideDefinition: (d, p) => ask('definition', about(d, p), location) }),
        l.registerReferenceProvider(language, { provideReferences: (d, p, context) =>
            ask('references', { ...about(d, p), context }, all(location)) }),
        l.registerDocumentHighlightProvider(language, { provideDocumentHighlights: (d, p) =>
            ask('documentHighlight', about(d, p), all(h => new vscode.DocumentHighlight(range(h.range), h.kind - 1))) }),
        l.registerDocumentSymbolProvider(language, { provideDocumentSymbols: d =>
            ask('documentSymbol', about(d), all(symbol)) }),
        l.registerDocumentFormattingEditProvider(language, { provideDocumentFormattingEdits: (d, options) =>
            ask('formatting', { ...about(d), options }, all(e => vscode.TextEdit.replace(range(e.range), e.newText))) }),
        l.registerRenameProvider(language, {
            prepareRename: async (d, p) => {
                const r = await ask('prepareRename', about(d, p), range);
                if (!r)
                    throw new Error('only what this text declares can be renamed');
                return r;
            },
            provideRenameEdits: (d, p, newName) => ask('rename', { ...about(d, p), newName }, workspaceEdit, true) }),
        l.registerCompletionItemProvider(language, { provideCompletionItems: (d, p) =>
            ask('completion', about(d, p), c => c.items.map(completion)) }, '.', '['),
        l.registerSignatureHelpProvider(language, { provideSignatureHelp: (d, p) =>
            ask('signatureHelp', about(d, p), signatureHelp) }, '(', ','),
        l.registerCodeActionsProvider(language, { provideCodeActions: (d, r) =>
            ask('codeAction', { ...about(d), range: fromRange(r), context: { diagnostics: [] } }, all(a => {
                const out = new vscode.CodeAction(a.title, vscode.CodeActionKind.QuickFix);
                out.edit = workspaceEdit(a.edit);
                out.isPreferred = a.isPreferred;
                out.diagnostics = a.diagnostics.map(diagnostic);
                return out;
            })) }, { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] }),
        l.registerDocumentSemanticTokensProvider(language, { provideDocumentSemanticTokens: d =>
            ask('semanticTokens/full', about(d), t => new vscode.SemanticTokens(new Uint32Array(t.data))) },
            new vscode.SemanticTokensLegend(legend.tokenTypes, legend.tokenModifiers)),
        l.registerInlayHintsProvider(language, { provideInlayHints: (d, r) =>
            ask('inlayHint', { ...about(d), range: fromRange(r) }, all(h => {
                const out = new vscode.InlayHint(place(h.position), h.label, vscode.InlayHintKind.Type);
                out.paddingLeft = h.paddingLeft;
                return out;
            })) }),
    ];
}

// ---- the life of the extension ----

let connection = null;

async function start(diagnostics) {
    const path = vscode.workspace.getConfiguration('cdl').get('path') || 'cdl';
    const mine = new Connection(path, (method, params) => {
        if (method === 'textDocument/publishDiagnostics')
            diagnostics.set(vscode.Uri.parse(params.uri), params.diagnostics.map(diagnostic));
        else if (method === 'window/showMessage')
            vscode.window.showErrorMessage(params.message);
    }, error => {
        diagnostics.clear();
        if (error && mine === connection)
            vscode.window.showErrorMessage('`' + path + ' lsp` does not run: ' + error.message +
                                           '. The setting cdl.path names the program.');
    });
    connection = mine;
    const r = await mine.request('initialize', { processId: process.pid, rootUri: null, capabilities: { textDocument: {
        hover: { contentFormat: ['markdown'] },
        documentSymbol: { hierarchicalDocumentSymbolSupport: true },
        signatureHelp: { signatureInformation: { parameterInformation: { labelOffsetSupport: true } } } } } });
    if (!r)
        return null;
    mine.notify('initialized', {});
    vscode.workspace.textDocuments.forEach(opened);
    return r.capabilities.semanticTokensProvider.legend;
}

async function stop() {
    const old = connection;
    connection = null;
    if (!old || old.ended)
        return;
    await old.request('shutdown');
    old.notify('exit');
}

function opened(d) {
    if (d.languageId === 'cdl' && connection)
        connection.notify('textDocument/didOpen', { textDocument: { uri: d.uri.toString(), languageId: 'cdl',
                                                                    version: d.version, text: d.getText() } });
}

async function activate(context) {
    const diagnostics = vscode.languages.createDiagnosticCollection('cdl');
    const keep = context.subscriptions;
    const idle = { request: () => Promise.resolve(null) };
    keep.push(diagnostics,
        vscode.workspace.onDidOpenTextDocument(opened),
        vscode.workspace.onDidSaveTextDocument(d => {
            if (d.languageId === 'cdl' && connection)
                connection.notify('textDocument/didSave', about(d));
        }),
        vscode.workspace.onDidCloseTextDocument(d => {
            if (d.languageId === 'cdl' && connection)
                connection.notify('textDocument/didClose', about(d));
        }),
        vscode.workspace.onDidChangeTextDocument(e => {
            const d = e.document;
            if (d.languageId === 'cdl' && connection && e.contentChanges.length)
                connection.notify('textDocument/didChange', {
                    textDocument: { uri: d.uri.toString(), version: d.version },
                    // the editor gives all changes by places of the text before: from the last to the first
                    contentChanges: [...e.contentChanges].sort((a, b) => b.rangeOffset - a.rangeOffset)
                        .map(c => ({ range: fromRange(c.range), text: c.text })) });
        }),
        vscode.commands.registerCommand('cdl.restart', async () => {
            await stop();
            await start(diagnostics);
        }));
    const legend = await start(diagnostics);
    if (legend)
        keep.push(...providers(() => connection || idle, legend));
}

module.exports = { activate, deactivate: stop };

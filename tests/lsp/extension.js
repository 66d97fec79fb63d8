// The extension for VS Code against the server, with a stand-in for the editor: node extension.js EXTENSION CDL
'use strict';
const [extension, cdl] = process.argv.slice(2);
const Module = require('module');
class Any { constructor(...given) { this.given = given; } }
const told = {}, events = {}, shown = [];
const register = name => (selector, provider) => { told[name] = provider; return { dispose() {} }; };
const vscode = {
    Position: class { constructor(line, character) { this.line = line; this.character = character; } },
    Range: class { constructor(start, end) { this.start = start; this.end = end; } },
    Uri: { parse: text => ({ toString: () => text }) },
    WorkspaceEdit: class { constructor() { this.all = []; } replace(...one) { this.all.push(one); } },
    TextEdit: { replace: (range, text) => ({ range, text }) },
    CodeActionKind: { QuickFix: 'quickfix' }, InlayHintKind: { Type: 1 },
    languages: new Proxy({}, { get: (_, name) => name === 'createDiagnosticCollection'
        ? () => ({ set: (uri, list) => { told.found = list; (told.next || (() => {}))(list); }, clear() {}, dispose() {} })
        : register(name) }),
    workspace: { getConfiguration: () => ({ get: () => cdl }), textDocuments: [],
                 onDidOpenTextDocument: f => { events.open = f; return {}; }, onDidSaveTextDocument: () => ({}), onDidCloseTextDocument: f => { events.close = f; return {}; },
                 onDidChangeTextDocument: f => { events.change = f; return {}; } },
    window: { showErrorMessage: m => shown.push(m) },
    commands: { registerCommand: () => ({}) },
};
for (const name of ['Diagnostic', 'DiagnosticRelatedInformation', 'Location', 'Hover', 'MarkdownString', 'DocumentHighlight', 'DocumentSymbol',
                    'CompletionItem', 'SignatureHelp', 'SignatureInformation', 'ParameterInformation', 'CodeAction', 'SemanticTokens',
                    'SemanticTokensLegend', 'InlayHint'])
    vscode[name] = class extends Any {};
const load = Module._load;
Module._load = (name, ...rest) => name === 'vscode' ? vscode : load(name, ...rest);

let failed = 0;
const verdict = (name, good, seen) => {
    console.log((good ? 'ok ' : 'not ok ') + name);
    if (!good) { failed = 1; console.log('    ' + JSON.stringify(seen)); }
};
const text = 'model m {\n    ## how stiff\n    param k = 2 [N/m]\n    dof x = 0 [m]\n    1 [kg]*x\'\' = -k*xx\n}\n';
const doc = { uri: vscode.Uri.parse('untitled:a'), languageId: 'cdl', version: 1, text, getText() { return this.text; } };
const at = (mark, shift = 0) => {
    const k = doc.text.indexOf(mark) + shift, before = doc.text.slice(0, k).split('\n');
    return new vscode.Position(before.length - 1, before[before.length - 1].length);
};
(async () => {
    const e = require(extension);
    vscode.workspace.textDocuments.push(doc);
    const found = new Promise(resolve => { told.next = resolve; });
    await e.activate({ subscriptions: [] });
    const list = await found;
    verdict('diagnostics reach the editor', list.length === 1 && /unknown name 'xx'/.test(list[0].given[1]), list);
    const hover = await told.registerHoverProvider.provideHover(doc, at('k = 2'));
    verdict('hover', /how stiff/.test(JSON.stringify(hover)), hover);
    const fix = await told.registerCodeActionsProvider.provideCodeActions(doc, new vscode.Range(at('xx'), at('xx', 2)));
    verdict('quick fix', fix.length === 1 && fix[0].edit.all[0][2] === 'x', fix);
    const next = new Promise(resolve => { told.next = resolve; });
    const range = new vscode.Range(at('xx'), at('xx', 2));
    doc.version = 2;
    events.change({ document: doc, contentChanges: [{ range, rangeOffset: text.indexOf('xx'), text: 'x' }] });
    doc.text = text.replace('xx', 'x');
    verdict('a change', (await next).length === 0, told.found);
    const p = told;
    const all = {
        definition: await p.registerDefinitionProvider.provideDefinition(doc, at('k*x')),
        references: await p.registerReferenceProvider.provideReferences(doc, at('k*x'), { includeDeclaration: true }),
        highlights: await p.registerDocumentHighlightProvider.provideDocumentHighlights(doc, at('k*x')),
        symbols: await p.registerDocumentSymbolProvider.provideDocumentSymbols(doc),
        format: await p.registerDocumentFormattingEditProvider.provideDocumentFormattingEdits(doc, {}),
        prepare: await p.registerRenameProvider.prepareRename(doc, at('k*x')),
        rename: await p.registerRenameProvider.provideRenameEdits(doc, at('k*x'), 'stiffness'),
        completion: await p.registerCompletionItemProvider.provideCompletionItems(doc, at('k*x')),
        tokens: await p.registerDocumentSemanticTokensProvider.provideDocumentSemanticTokens(doc),
        hints: await p.registerInlayHintsProvider.provideInlayHints(doc, new vscode.Range(at('model'), at('}'))),
    };
    verdict('every provider answers', Object.values(all).every(x => x), all);
    verdict('rename', all.rename.all.length === 2 && all.rename.all.every(x => x[2] === 'stiffness'), all.rename);
    let refused = '';
    await p.registerRenameProvider.provideRenameEdits(doc, at('k*x'), '9').catch(x => { refused = x.message; });
    verdict('a refusal is shown', refused === 'this is not a valid name', refused);
    await e.deactivate();
    verdict('no message was shown', shown.length === 0, shown);
    process.exit(failed);
})().catch(x => { console.log('not ok extension\n    ' + x.stack); process.exit(1); });

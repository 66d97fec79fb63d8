#!/bin/sh
# package.sh [FILE.vsix]: the extension as a package, made without a network: a zip file with two lists in it.
# `code --install-extension FILE.vsix` installs it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-cdl.vsix}
python3 - "$here" "$out" <<'PY'
import json, os, sys, zipfile
here, out = sys.argv[1:]
about = json.load(open(os.path.join(here, "package.json"), encoding="utf-8"))
files = ["package.json", "extension.js", "language-configuration.json", "syntaxes/cdl.tmLanguage.json"]
kinds = {"json": "application/json", "js": "application/javascript", "vsixmanifest": "text/xml"}
types = '<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">' + \
    "".join('<Default Extension=".%s" ContentType="%s"/>' % k for k in kinds.items()) + "</Types>\n"
manifest = """<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="%(name)s" Version="%(version)s" Publisher="%(publisher)s"/>
    <DisplayName>%(displayName)s</DisplayName>
    <Description xml:space="preserve">%(description)s</Description>
    <Categories>Programming Languages,Linters,Formatters</Categories>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value="%(engine)s"/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="workspace"/>
    </Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets><Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/></Assets>
</PackageManifest>
""" % dict(about, engine=about["engines"]["vscode"])
with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
    def put(name, data):            # the same bytes whenever it is made
        z.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    put("extension.vsixmanifest", manifest)
    put("[Content_Types].xml", types)
    for f in files:
        put("extension/" + f, open(os.path.join(here, f), "rb").read())
PY
echo "$out"

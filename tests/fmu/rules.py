"""The rules of FMI 2.0 for modelDescription.xml, and that the binary is the one it describes: check(path) lists those
that are broken."""
import io, re, zipfile
import xml.etree.ElementTree as tree

ORDER = ["CoSimulation", "UnitDefinitions", "TypeDefinitions", "LogCategories", "DefaultExperiment", "ModelVariables",
         "ModelStructure"]
ATTRIBUTES = {
    "fmiModelDescription": "fmiVersion modelName guid description author version copyright license generationTool "
                           "generationDateAndTime variableNamingConvention numberOfEventIndicators",
    "CoSimulation": "modelIdentifier needsExecutionTool canHandleVariableCommunicationStepSize canInterpolateInputs "
                    "maxOutputDerivativeOrder canRunAsynchronuously canBeInstantiatedOnlyOncePerProcess "
                    "canNotUseMemoryManagementFunctions canGetAndSetFMUstate canSerializeFMUstate "
                    "providesDirectionalDerivative",
    "SourceFiles": "", "File": "name", "UnitDefinitions": "", "Unit": "name",
    "BaseUnit": "kg m s A K mol cd rad factor offset", "TypeDefinitions": "", "SimpleType": "name description",
    "Enumeration": "declaredType quantity min max start", "Item": "name value description", "LogCategories": "",
    "Category": "name description", "DefaultExperiment": "startTime stopTime tolerance stepSize",
    "ModelVariables": "", "ScalarVariable": "name valueReference description causality variability initial "
                                            "canHandleMultipleSetPerTimeInstant",
    "Real": "declaredType quantity unit displayUnit relativeQuantity min max nominal unbounded start derivative reinit",
    "Integer": "declaredType quantity min max start", "ModelStructure": "", "Outputs": "", "Derivatives": "",
    "InitialUnknowns": "", "Unknown": "index dependencies dependenciesKind",
}
# causality: variability: initial that is allowed (table in section 2.2.7)
COMBINATIONS = {
    "parameter": {"fixed": {"exact"}, "tunable": {"exact"}},
    "calculatedParameter": {"fixed": {"approx", "calculated"}, "tunable": {"approx", "calculated"}},
    "input": {"discrete": {None}, "continuous": {None}},
    "output": {"constant": {"exact"}, "discrete": {"exact", "approx", "calculated"},
               "continuous": {"exact", "approx", "calculated"}},
    "local": {"constant": {"exact"}, "fixed": {"approx", "calculated"}, "tunable": {"approx", "calculated"},
              "discrete": {"exact", "approx", "calculated"}, "continuous": {"exact", "approx", "calculated"}},
    "independent": {"continuous": {None}},
}
IDENTIFIER = r"(?:[A-Za-z_][A-Za-z_0-9]*|'[^']+')"
PART = IDENTIFIER + r"(?:\[\d+(?:,\d+)*\])?"
NAME = re.compile(rf"^(?:der\({PART}(?:\.{PART})*(?:,\d+)?\)|{PART}(?:\.{PART})*)$")

broken = []


def rule(holds, text):
    if not holds:
        broken.append(text)


def attributes(node):
    known = ATTRIBUTES.get(node.tag)
    rule(known is not None, f"no element {node.tag}")
    for name in node.attrib:
        rule(known is None or name in known.split(), f"{node.tag} has no attribute {name}")
    for child in node:
        attributes(child)


def variable(number, x, units, types):
    a = x.attrib
    name, of = a["name"], x[0]
    rule(len(x) == 1, f"{name}: one type")
    causality, variability, initial = a.get("causality", "local"), a.get("variability", "continuous"), a.get("initial")
    allowed = COMBINATIONS.get(causality, {}).get(variability)
    rule(allowed is not None and (initial in allowed), f"{name}: {causality}, {variability}, {initial}")
    needs = initial in ("exact", "approx") or causality in ("input", "parameter") or variability == "constant"
    rule(("start" in of.attrib) == needs, f"{name}: a start value where one is needed, and nowhere else")
    rule(variability != "continuous" or of.tag == "Real", f"{name}: only reals are continuous")
    rule(NAME.match(name), f"{name}: no structured name")
    if "unit" in of.attrib:
        rule(of.attrib["unit"] in units, f"{name}: unit {of.attrib['unit']} is not defined")
    if "declaredType" in of.attrib:
        rule(types.get(of.attrib["declaredType"]) == of.tag, f"{name}: type {of.attrib['declaredType']}")
    if "start" in of.attrib:
        float(of.attrib["start"])
    return causality, initial


def structure(root, all_):
    outputs = [k + 1 for k, x in enumerate(all_) if x.get("causality") == "output"]
    unknowns = [k + 1 for k, x in enumerate(all_)
                if x.get("causality") == "output" and x.get("initial") in ("approx", "calculated")]
    for part, want in (("Outputs", outputs), ("InitialUnknowns", unknowns)):
        have = [int(x.get("index")) for x in root.findall(f"ModelStructure/{part}/Unknown")]
        rule(have == want, f"{part}: {have} instead of {want}")


def check(path):
    broken.clear()
    unit = zipfile.ZipFile(path)
    rule(unit.testzip() is None, "the zip file is damaged")
    names = unit.namelist()
    root = tree.parse(io.BytesIO(unit.read("modelDescription.xml"))).getroot()
    attributes(root)
    rule(root.get("fmiVersion") == "2.0", "fmiVersion")
    places = [ORDER.index(x.tag) for x in root if x.tag in ORDER]
    rule(places == sorted(places) and len(places) == len(root), "order of the elements")
    identifier = root.find("CoSimulation").get("modelIdentifier")
    rule(re.match("^[A-Za-z_][A-Za-z_0-9]*$", identifier), "modelIdentifier")
    for need in ("sources/%s.c" % identifier, "binaries/linux64/%s.so" % identifier):
        rule(need in names, f"no {need}")
    guid = root.get("guid")
    rule(re.match(r"^\{[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\}$", guid), f"guid {guid}")
    for name in names:
        if name.startswith(("sources", "binaries")):
            rule(guid.encode() in unit.read(name), f"{name} has another GUID")
    units = {x.get("name") for x in root.findall("UnitDefinitions/Unit")}
    types = {x.get("name"): x[0].tag for x in root.findall("TypeDefinitions/SimpleType")}
    all_ = root.findall("ModelVariables/ScalarVariable")
    names = [x.get("name") for x in all_]
    rule(len(set(names)) == len(names), "names that occur twice")
    places = [(x[0].tag.replace("Enumeration", "Integer"), x.get("valueReference")) for x in all_]
    rule(len(set(places)) == len(places), "value references that occur twice")
    for k, x in enumerate(all_):
        variable(k + 1, x, units, types)
        of = x[0].get("derivative")
        rule(of is None or x.get("name") == "der(%s)" % names[int(of) - 1], f"{x.get('name')}: derivative of {of}")
    structure(root, all_)
    return list(broken)

# spdx.awk - an SPDX 2.3 document in JSON, of one thing and what it is made of.
#
# Lines "TYPE NAME VERSION WHAT": Source and deb, a package of the distribution (WHAT: "source", or its architecture); pypi, a wheel
# (WHAT: its SHA-256, or -); file, one of this project's own (WHAT: its SHA-256).
# Variables: name, version; main and purpose, what the thing is to SPDX; relation, how it stands to its parts; sum, what makes its
# namespace its own; checksums, "yes" when that is the SHA-256 of the thing itself; created; distribution.
function package(id, name, version, more) {
    return sprintf("    {\"SPDXID\": \"SPDXRef-%s\", \"name\": \"%s\", \"versionInfo\": \"%s\", " \
        "\"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false, \"licenseConcluded\": \"NOASSERTION\", " \
        "\"licenseDeclared\": \"NOASSERTION\", \"copyrightText\": \"NOASSERTION\", %s}", id, name, version, more)
}
function relationship(from, type, to) {
    return sprintf("    {\"spdxElementId\": \"SPDXRef-%s\", \"relationshipType\": \"%s\", " \
        "\"relatedSpdxElement\": \"SPDXRef-%s\"}", from, type, to)
}
function escaped(text) { gsub(/\+/, "%2B", text); gsub(/:/, "%3A", text); return text }
function checksum(sum) { return "\"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"" sum "\"}]" }
function is_a(purpose) { return "\"primaryPackagePurpose\": \"" purpose "\"" }
function reference(purl) {
    return "\"externalRefs\": [{\"referenceCategory\": \"PACKAGE-MANAGER\", \"referenceType\": \"purl\", " \
        "\"referenceLocator\": \"" purl "\"}]"
}
{
    id = $1 "-" $2
    gsub(/[^A-Za-z0-9.-]/, "-", id)
    if (seen[id]++)
        id = id "-" seen[id]
    if ($1 == "deb" || $1 == "Source")
        more = reference("pkg:deb/" distribution "/" escaped($2) "@" escaped($3) "?arch=" $4)
    else if ($1 == "pypi")
        more = reference("pkg:pypi/" $2 "@" escaped($3)) ($4 == "-" ? "" : ", " checksum($4))
    else
        more = is_a("APPLICATION") ", " checksum($4)
    packages = packages ",\n" package(id, $2, $3, more)
    relations = relations ",\n" relationship(main, relation, id)
}
END {
    printf "{\n  \"spdxVersion\": \"SPDX-2.3\",\n  \"dataLicense\": \"CC0-1.0\",\n  \"SPDXID\": \"SPDXRef-DOCUMENT\",\n"
    printf "  \"name\": \"%s-%s\",\n", name, version
    printf "  \"documentNamespace\": \"https://spdx.org/spdxdocs/%s-%s-%s\",\n", name, version, sum
    printf "  \"creationInfo\": {\"created\": \"%s\", \"creators\": [\"Tool: torchkeeper-sbom\"]},\n", created
    printf "  \"packages\": [\n%s%s\n  ],\n", \
        package(main, name, version, is_a(purpose) (checksums == "yes" ? ", " checksum(sum) : "")), packages
    printf "  \"relationships\": [\n%s%s\n  ]\n}\n", relationship("DOCUMENT", "DESCRIBES", main), relations
}

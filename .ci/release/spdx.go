package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"time"
)

const repositoryURL = "https://github.com/weft-proxy/weft"

type spdxReference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxPackage struct {
	ID         string          `json:"SPDXID"`
	Name       string          `json:"name"`
	Version    string          `json:"versionInfo,omitempty"`
	Download   string          `json:"downloadLocation"`
	Analyzed   bool            `json:"filesAnalyzed"`
	Concluded  string          `json:"licenseConcluded"`
	Declared   string          `json:"licenseDeclared"`
	Copyright  string          `json:"copyrightText"`
	Checksums  []spdxChecksum  `json:"checksums,omitempty"`
	References []spdxReference `json:"externalRefs,omitempty"`
}

type spdxRelationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

var notID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// writeSPDX lists the linker's record of modules in the binary. Declared has licences by module path.
func writeSPDX(src *source, arch, binary string, declared map[string]string, out string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	sum, err := digest(binary)
	if err != nil {
		return err
	}
	name := src.artifact(arch, "")
	packages := []spdxPackage{{
		ID: "SPDXRef-weft", Name: "weft", Version: src.version, Download: "git+" + repositoryURL + "@" + src.commit,
		Concluded: "Apache-2.0", Declared: "Apache-2.0", Copyright: "NOASSERTION", Checksums: []spdxChecksum{{"SHA256", sum}},
	}}
	relationships := []spdxRelationship{{"SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-weft"}}
	const stdlib = "stdlib"
	declared[stdlib] = "BSD-3-Clause"
	modules := append([]*debug.Module{{Path: stdlib, Version: info.GoVersion}}, info.Deps...)
	for _, m := range modules {
		if m.Replace != nil {
			m = m.Replace
		}
		p := spdxPackage{
			ID: "SPDXRef-" + notID.ReplaceAllString(m.Path+"-"+m.Version, "-"), Name: m.Path, Version: m.Version,
			Download: "NOASSERTION", Concluded: "NOASSERTION", Declared: cmp.Or(declared[m.Path], "NOASSERTION"), Copyright: "NOASSERTION",
			References: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}},
		}
		packages = append(packages, p)
		relationships = append(relationships, spdxRelationship{"SPDXRef-weft", "DEPENDS_ON", p.ID})
	}
	return writeJSON(filepath.Join(out, name+".spdx.json"), map[string]any{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
		"documentNamespace": fmt.Sprintf("%s/spdx/%s-%s", repositoryURL, name, sum),
		"creationInfo":      map[string]any{"created": src.time.Format(time.RFC3339), "creators": []string{"Tool: weft-release-" + src.version}},
		"packages":          packages, "relationships": relationships,
	})
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func digest(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// writeProvenance states the commit of the files in out, as in-toto's statement with SLSA's predicate. It is
// not signed: to prove the digests, build the commit again.
func writeProvenance(src *source, out string) error {
	entries, err := filesBelow(out)
	if err != nil {
		return err
	}
	var subjects []map[string]any
	for _, e := range entries {
		sum, err := digest(e.path)
		if err != nil {
			return err
		}
		subjects = append(subjects, map[string]any{"name": e.name, "digest": map[string]string{"sha256": sum}})
	}
	goVersion, err := src.output("go", "env", "GOVERSION")
	if err != nil {
		return err
	}
	return writeJSON(filepath.Join(out, "weft-"+src.version+".provenance.json"), map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          repositoryURL + "/tree/main/.ci/release",
				"externalParameters": map[string]string{"repository": repositoryURL, "ref": src.commit},
				"internalParameters": map[string]string{"go": goVersion},
				"resolvedDependencies": []map[string]any{
					{"uri": "git+" + repositoryURL, "digest": map[string]string{"gitCommit": src.commit}},
				},
			},
			"runDetails": map[string]any{"builder": map[string]string{"id": repositoryURL + "/tree/main/.ci/release#unsigned"}},
		},
	})
}

// writeSums writes SHA256SUMS as sha256sum -c reads it, and prints it.
func writeSums(out string) error {
	entries, err := filesBelow(out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		sum, err := digest(e.path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, e.name)
	}
	fmt.Print(sums.String())
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

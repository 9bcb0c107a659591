package security

import (
	"encoding/json"
	"fmt"
)

// Files returns the generated files by path in this directory.
func Files() (map[string]string, error) {
	out := make(map[string]string)
	for _, k := range Kinds() {
		text, err := json.MarshalIndent(Seccomp(k), "", "  ")
		if err != nil {
			return nil, fmt.Errorf("encode profile of %s: %w", k, err)
		}
		out["seccomp/"+string(k)+".json"] = string(text) + "\n"
	}
	out["apparmor/weft"] = AppArmor()
	return out, nil
}

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestServicesUnderTheExample checks that the example configuration grants what the Service
// frontend publishes.
func TestServicesUnderTheExample(t *testing.T) {
	files, err := filepath.Glob("../../frontends/services/render/testdata/*.nft")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rulesets: %v", err)
	}
	for _, name := range files {
		args := []string{"access", "check", "--config", "../../deploy/examples/config.yaml", "--as", "services", "-f", name}
		var out, errs bytes.Buffer
		code := run(args, strings.NewReader(""), &out, &errs)
		if filepath.Base(name) == "masquerade-all.nft" {
			// This one is of another --masquerade-bit, which the example does not grant.
			if code != 1 || !strings.Contains(out.String(), "may not change the bits 0x00008000 of the packet mark") {
				t.Errorf("%s: exit code %d\n%.2000s", name, code, out.String())
			}
			continue
		}
		if code != 0 || !strings.Contains(out.String(), "would be admitted\n") {
			t.Errorf("%s: exit code %d\n%.2000s%s", name, code, out.String(), errs.String())
		}
	}
}

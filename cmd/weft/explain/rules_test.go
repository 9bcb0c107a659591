package explain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadFile reads rulesets as versions of nft list them.
func TestReadFile(t *testing.T) {
	for _, tt := range []struct {
		flags   string
		dormant bool
	}{
		{"", false},
		{"\tflags \n", false}, // nft 1.0.6 does not know the flags of weft's tables
		{"\tflags owner,persist\n", false},
		{"\tflags dormant\n", true},
		{"\tflags dormant,owner,persist\n", true},
	} {
		name := filepath.Join(t.TempDir(), "saved.nft")
		text := "table ip weft { # progname weft\n" + tt.flags + "\tset s {\n\t\ttype ipv4_addr\n\t\tflags interval\n\t}\n\tchain c {\n\t\ttype filter hook input priority 0; policy drop;\n\t\tip saddr @s counter packets 5 bytes 6 accept comment \"x\"\n\t}\n}\n"
		must(t, os.WriteFile(name, []byte(text), 0o600))
		rules, _, err := readRules(name)
		if err != nil {
			t.Errorf("flags %q: %v", tt.flags, err)
			continue
		}
		table := rules.Tables[0]
		if table.Dormant != tt.dormant || table.Sets[0].Decl.Flags == 0 || table.Chains[0].Rules[0].Comment != "x" || !strings.HasPrefix(table.Chains[0].Rules[0].Text, "ip saddr @s counter") {
			t.Errorf("flags %q: %+v", tt.flags, table)
		}
	}
	if _, _, err := readRules(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that does not exist is read")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

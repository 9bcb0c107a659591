package security

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAppArmorCompiles compiles the profiles with AppArmor's parser, without the kernel, which has no
// AppArmor.
func TestAppArmorCompiles(t *testing.T) {
	parser, err := exec.LookPath("apparmor_parser")
	if err != nil {
		if parser, err = exec.LookPath("/sbin/apparmor_parser"); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal("apparmor_parser is missing (Debian's package apparmor)")
			}
			t.Skip("apparmor_parser is missing")
		}
	}
	compile := func(text string) (string, error) {
		path := filepath.Join(t.TempDir(), "weft")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		// Without a load into the kernel and without a cache; for a kernel that enforces all of
		// AppArmor 3.0.
		out, err := exec.CommandContext(t.Context(), parser, "-Q", "-K", "-M", "/etc/apparmor.d/abi/3.0", "--warn=all", "-o", path+".bin", path).CombinedOutput() //nolint:gosec // of the test
		return string(out), err
	}
	out, err := compile(AppArmor())
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Cache read/write disabled") {
			t.Error(line)
		}
	}
	if out, err := compile(strings.Replace(AppArmor(), "capability net_admin,", "capability net_admim,", 1)); err == nil {
		t.Errorf("the parser accepts a capability that does not exist:\n%s", out)
	}
}

// checkFiles requires a rule for every opened file, and a file for every rule.
func checkFiles(t *testing.T, k Kind, r *record) {
	t.Helper()
	type matcher struct {
		fileRule
		pattern *regexp.Regexp
		used    bool
	}
	var rules []*matcher
	for _, f := range k.files() {
		rules = append(rules, &matcher{fileRule: f, pattern: regexp.MustCompile("^" + globPattern(f.path) + "$")})
	}
	for path, perms := range r.files {
		granted := ""
		for _, m := range rules {
			if m.pattern.MatchString(path) || m.pattern.MatchString(path+"/") {
				granted += m.perms
				m.used = true
			}
		}
		for _, p := range perms {
			denied := k == Single && p == 'w' && (strings.HasPrefix(path, "/proc/sys/net/netfilter/") || path == "/sys/module/nf_conntrack/parameters/hashsize")
			if !strings.ContainsRune(granted, p) && !denied {
				t.Errorf("container %s uses %s (%s), and the AppArmor profile grants %q", k, path, perms, granted)
			}
		}
	}
	for _, m := range rules {
		if !m.used && m.rare == "" {
			t.Errorf("container %s used no file like %s: remove the rule, or say when it is used", k, m.path)
		}
	}
}

// globPattern translates a pattern of AppArmor to a regular expression.
func globPattern(glob string) string {
	return strings.NewReplacer("**", ".+", "*", "[^/]*", "{", "(?:", "}", ")", ",", "|", ".", `\.`, "@{pid}", "[0-9]+").Replace(glob)
}

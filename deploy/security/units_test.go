package security

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func unitLines(t *testing.T, path, setting string) (values []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), setting+"="); ok {
			values = append(values, v)
		}
	}
	return values
}

func unitKinds() map[string]Kind {
	return map[string]Kind{"weft": Single, "weft-aggregator": Aggregator, "weft-services": Services, "weft-policy": Policy}
}

// TestUnitSettings: the units' filters allow all calls of the containers' profiles, and the units have
// the required settings.
func TestUnitSettings(t *testing.T) {
	found, err := filepath.Glob("../systemd/*.service")
	if err != nil || len(found) != len(unitKinds())+1 {
		t.Fatalf("units: %v, %v, want %v and weft-hold", found, err, unitKinds())
	}
	for setting, want := range map[string]string{"CapabilityBoundingSet": "", "RestrictAddressFamilies": "AF_UNIX", "NoNewPrivileges": "yes", "ProtectSystem": "strict"} {
		if have := unitLines(t, "../systemd/weft-hold.service", setting); !slices.Equal(have, []string{want}) {
			t.Errorf("weft-hold: %s=%q, want %s", setting, have, want)
		}
	}
	for unit, kind := range unitKinds() {
		path := "../systemd/" + unit + ".service"
		one := func(setting string) string {
			v := unitLines(t, path, setting)
			if len(v) != 1 {
				t.Errorf("%s has %d lines of %s", unit, len(v), setting)
			}
			return strings.Join(v, " ")
		}
		allowed := systemCalls(t, one("SystemCallFilter"))
		calls, rare := kind.Calls()
		for _, c := range calls {
			// systemd does not need the container runtime's calls.
			if !allowed[c] && !strings.Contains(rare[c], "container runtime") {
				t.Errorf("%s: the filter refuses %s", unit, c)
			}
		}
		for _, refused := range []string{"bpf", "ptrace", "mount", "init_module", "perf_event_open"} {
			if allowed[refused] {
				t.Errorf("%s: the filter allows %s", unit, refused)
			}
		}
		families := strings.Fields(one("RestrictAddressFamilies"))
		slices.Sort(families)
		if want := []string{"AF_INET", "AF_INET6", "AF_NETLINK", "AF_UNIX"}; !slices.Equal(families, want) {
			t.Errorf("%s: families %v, want %v", unit, families, want)
		}
		capabilities := ""
		if kind.programsKernel() {
			capabilities = "CAP_NET_ADMIN"
		}
		for setting, want := range map[string]string{
			"CapabilityBoundingSet": capabilities, "StartLimitIntervalSec": "0", "Restart": "always", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "OOMScoreAdjust": "-999",
		} {
			if have := one(setting); have != want {
				t.Errorf("%s: %s=%s, want %s", unit, setting, have, want)
			}
		}
		user := ""
		if !kind.programsKernel() {
			user = unit
		}
		if have := strings.Join(unitLines(t, path, "User"), " "); have != user || one("Group") != "weft" {
			t.Errorf("%s: user %q, group %q: want %q and weft", unit, have, one("Group"), user)
		}
	}
}

// TestUnitPublishers: the units' configuration names the chart's publishers, with the same rights.
func TestUnitPublishers(t *testing.T) {
	_, chart := rendered(t, map[string]any{"apiServer": map[string]any{"host": apiHost}, "networkPolicy": map[string]any{"enabled": true}})
	own, err := os.ReadFile("../systemd/publishers.yaml")
	must(t, err)
	publishers := func(text string) string {
		var c struct{ Publishers []map[string]any }
		must(t, yaml.Unmarshal([]byte(text), &c))
		for _, p := range c.Publishers {
			if p["flows"] == false {
				delete(p, "flows")
			}
		}
		out, err := yaml.Marshal(c.Publishers)
		must(t, err)
		return string(out)
	}
	if have, want := publishers(string(own)), publishers(chart); have != want {
		t.Errorf("../systemd/publishers.yaml has the publishers\n%swant\n%s", have, want)
	}
	users, err := os.ReadFile("../systemd/sysusers.d/weft.conf")
	must(t, err)
	for _, line := range []string{"u weft-services 64501:64500 ", "u weft-policy   64502:64500 ", "g weft          64500\n"} {
		if !strings.Contains(string(users), "\n"+line) {
			t.Errorf("sysusers.d/weft.conf has no %q", line)
		}
	}
}

// systemCalls expands the sets of systemd's filters.
func systemCalls(t *testing.T, filter string) map[string]bool {
	t.Helper()
	all := make(map[string]bool)
	for _, name := range strings.Fields(filter) {
		if !strings.HasPrefix(name, "@") {
			all[name] = true
			continue
		}
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "syscall-filter", name).CombinedOutput() //nolint:gosec // of the unit
		if err != nil {
			if os.Getenv("CI") != "true" {
				t.Skipf("systemd-analyze: %v", err)
			}
			t.Fatalf("systemd-analyze: %v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSpace(line)
			if line == name || line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			for call := range systemCalls(t, line) {
				all[call] = true
			}
		}
	}
	return all
}

// TestModules: the modules loaded at boot are those of weft's first tables.
func TestModules(t *testing.T) {
	text, err := os.ReadFile("../systemd/modules-load.d/weft.conf")
	must(t, err)
	for _, name := range []string{"nf_tables", "nf_conntrack", "nf_conntrack_netlink", "nft_chain_nat", "nft_ct"} {
		if !strings.Contains(string(text), "\n"+name+"\n") {
			t.Errorf("%s is not loaded at boot", name)
		}
	}
}

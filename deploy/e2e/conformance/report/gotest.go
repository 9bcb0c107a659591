package report

import (
	"regexp"
	"strconv"
	"strings"
)

var ended = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (\S+) \(([0-9.]+)s\)$`)

// parseTests returns only tests without subtests.
func parseTests(output string) []Spec {
	states := map[string]State{"PASS": Passed, "FAIL": Failed, "SKIP": Skipped}
	var all []Spec
	for line := range strings.Lines(output) {
		m := ended.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		seconds, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			continue
		}
		all = append(all, Spec{Name: m[2], State: states[m[1]], Seconds: seconds})
	}
	var leaves []Spec
	for _, s := range all {
		parent := false
		for _, other := range all {
			parent = parent || strings.HasPrefix(other.Name, s.Name+"/")
		}
		if !parent {
			_, name, _ := strings.Cut(s.Name, "/")
			s.Name = strings.ReplaceAll(name, "_", " ")
			leaves = append(leaves, s)
		}
	}
	return leaves
}

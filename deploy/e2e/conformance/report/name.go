package report

import (
	"strings"
)

// Short returns the name of a spec in tables, without common and irrelevant parts.
func Short(name string) string {
	for _, tag := range []string{"[sig-network]", "[LinuxOnly]", "[NodeConformance]", "[Privileged]"} {
		name = strings.ReplaceAll(name, tag, "")
	}
	return strings.Join(strings.Fields(name), " ")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

type kind struct {
	title string
	has   func(string) bool
}

// kinds are in the order of the summary; the first match wins.
var kinds = []kind{
	{"Conformance", func(name string) bool { return strings.Contains(name, "[Conformance]") }},
	{"NetworkPolicy", func(name string) bool { return strings.HasPrefix(name, "Netpol ") }},
	{"LoadBalancer", func(name string) bool { return strings.HasPrefix(name, "LoadBalancers ") }},
	{"Others", func(string) bool { return true }},
}

func kindOf(name string) string {
	for _, k := range kinds {
		if k.has(name) {
			return k.title
		}
	}
	return ""
}

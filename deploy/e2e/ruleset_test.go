package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// objects returns the node's ruleset as one line per object, keyed by kind and handle, without
// counters.
func (d *daemon) objects(t *testing.T, e *env) map[string]string {
	t.Helper()
	text, err := d.node.Run(e.ctx, "nft", "-j", "-a", "list", "ruleset")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Nftables []map[string]map[string]any `json:"nftables"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("read ruleset of %s: %v", d.node.Name(), err)
	}
	found := map[string]string{}
	for _, entry := range list.Nftables {
		for kind, object := range entry {
			if kind == "metainfo" {
				continue
			}
			key := fmt.Sprint(kind, " ", object["family"], " ", object["table"], " ", object["chain"], " ", object["name"], " ", object["handle"])
			if elements, ok := object["elem"].([]any); ok {
				for _, element := range elements {
					found[key+" "+encode(t, still(element))] = "element"
				}
				delete(object, "elem")
			}
			if kind == "counter" {
				delete(object, "packets")
				delete(object, "bytes")
			}
			found[key] = encode(t, still(object))
		}
	}
	return found
}

func still(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if k == "counter" {
				v[k] = nil
				continue
			}
			v[k] = still(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = still(inner)
		}
	}
	return v
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// changed lists lost or changed objects. Unused chains and their rules may go: weft deletes them some
// time after their last use.
func changed(before, after map[string]string) []string {
	var lost []string
	idle := idleChains(before)
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if after[key] == "" && slices.ContainsFunc(idle, func(chain string) bool { return strings.HasPrefix(key, chain) }) {
			continue
		}
		if after[key] != before[key] {
			lost = append(lost, fmt.Sprintf("%s: was %s, is %q", key, before[key], after[key]))
		}
	}
	return lost
}

// onDemand are the base chains that exist while one of these maps and sets has an element.
var onDemand = map[string][]string{
	"filter-input":        {"no-endpoint-services", "no-endpoint-nodeports"},
	"firewall-prerouting": {"source-ranges"},
	"firewall-output":     {"source-ranges"},
}

// idleChains returns key prefixes of unreferenced chains and their rules, and of base chains in
// onDemand that are not needed.
func idleChains(objects map[string]string) []string {
	// The content of each table as text.
	tables := map[string]string{}
	for key, value := range objects {
		if at := strings.Fields(key); len(at) > 2 {
			tables[at[1]+" "+at[2]+" "] += key + value
		}
	}
	var idle []string
	for key, value := range objects {
		var chain struct{ Family, Table, Name, Hook string }
		if !strings.HasPrefix(key, "chain ") || json.Unmarshal([]byte(value), &chain) != nil {
			continue
		}
		at := chain.Family + " " + chain.Table + " "
		if sets, some := onDemand[chain.Name]; chain.Hook != "" && (!some || filled(objects, at, sets)) {
			continue
		}
		if strings.Contains(tables[at], fmt.Sprintf(`"target":%q`, chain.Name)) {
			continue
		}
		idle = append(idle, "chain "+at+"<nil> "+chain.Name+" ", "rule "+at+chain.Name+" ")
	}
	return idle
}

func filled(objects map[string]string, table string, names []string) bool {
	for key, value := range objects {
		for _, name := range names {
			if value == "element" && strings.Contains(key, " "+table+"<nil> "+name+" ") {
				return true
			}
		}
	}
	return false
}

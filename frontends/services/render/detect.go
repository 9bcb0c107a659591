package render

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// maxInterface is the longest name of an interface (IFNAMSIZ, and its end).
const maxInterface = 15

// validate checks the words of a detection. An interface is quoted in rules, and
// nothing is escaped there.
func (d *Detect) validate() error {
	switch d.Mode {
	case DetectCIDRs, DetectNode:
		return nil
	case DetectInterface, DetectInterfacePrefix:
	default:
		return fmt.Errorf("detection mode %d is not known", d.Mode)
	}
	if d.Interface == "" || len(d.Interface) > maxInterface {
		return fmt.Errorf("interface %q of pods has not 1 to %d bytes", d.Interface, maxInterface)
	}
	bad := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`*"'\/:`, r) }
	if strings.ContainsFunc(d.Interface, bad) {
		return errors.New("interface of pods has a character that no name or no rule can have: " + fmt.Sprintf("%q", d.Interface))
	}
	return nil
}

// detection is how one family's rules tell flows of pods. The zero value can not.
type detection struct {
	// field is what is compared, value what with.
	field, value string
}

// detect works out how this node's pods are known.
func (t *table) detect(cfg *Config, podCIDRs []netip.Prefix) detection {
	d := &cfg.Detect
	switch d.Mode {
	case DetectInterface:
		return detection{"iifname", `"` + d.Interface + `"`}
	case DetectInterfacePrefix:
		if len(d.Interface) == maxInterface {
			// No longer name can begin so, and nft has no room for the star.
			return detection{"iifname", `"` + d.Interface + `"`}
		}
		return detection{"iifname", `"` + d.Interface + `*"`}
	case DetectNode:
	case DetectCIDRs:
		podCIDRs = d.CIDRs
	}
	cidrs := prefixes(podCIDRs, t.family)
	if len(cidrs) == 0 {
		return detection{}
	}
	texts := make([]string, len(cidrs))
	for i, c := range cidrs {
		texts[i] = prefixText(c)
	}
	field := t.words.spell("ip saddr")
	if len(texts) == 1 {
		return detection{field, texts[0]}
	}
	return detection{field, "{ " + strings.Join(texts, ", ") + " }"}
}

// works reports whether there is a way to tell.
func (d detection) works() bool { return d.field != "" }

// pod matches flows from pods.
func (d detection) pod() string { return d.field + " " + d.value }

// notPod matches flows from elsewhere. In the output hook there is no interface
// that the packet came in by, and so it is not from a pod.
func (d detection) notPod() string { return d.field + " != " + d.value }

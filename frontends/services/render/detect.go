package render

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// maxInterface is the maximum length of an interface's name (IFNAMSIZ without the NUL).
const maxInterface = 15

// validate validates a detection. An interface is quoted in rules, and nothing is escaped
// there.
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

// detection has the expressions by which the rules of a family recognize flows of pods.
// The zero value recognizes none.
type detection struct {
	// field is compared with value.
	field, value string
}

// detect returns the detection of this node.
func (t *table) detect(cfg *Config, podCIDRs []netip.Prefix) detection {
	d := &cfg.Detect
	switch d.Mode {
	case DetectInterface:
		return detection{"iifname", `"` + d.Interface + `"`}
	case DetectInterfacePrefix:
		if len(d.Interface) == maxInterface {
			// No longer name can have this prefix, and nft has no room for the star.
			return detection{"iifname", `"` + d.Interface + `"`}
		}
		return detection{"iifname", `"` + d.Interface + `*"`}
	case DetectNode:
	case DetectCIDRs:
		podCIDRs = d.CIDRs
	}
	field, texts := t.names.spell("ip saddr"), prefixTexts(podCIDRs, t.family)
	switch len(texts) {
	case 0:
		return detection{}
	case 1:
		return detection{field, texts[0]}
	default:
		return detection{field, "{ " + strings.Join(texts, ", ") + " }"}
	}
}

// works reports whether flows of pods can be recognized.
func (d detection) works() bool { return d.field != "" }

// pod matches flows from pods.
func (d detection) pod() string { return d.field + " " + d.value }

// notPod matches flows from other sources. A packet in the output hook has no input
// interface, so it is not from a pod.
func (d detection) notPod() string { return d.field + " != " + d.value }

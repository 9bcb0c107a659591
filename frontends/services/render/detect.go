package render

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// maxInterface is IFNAMSIZ without the NUL.
const maxInterface = 15

// Rules do not escape the interface.
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

// The zero detection matches no flow.
type detection struct {
	field, value string
}

func (t *table) detect(cfg *Config, podCIDRs []netip.Prefix) detection {
	d := &cfg.Detect
	switch d.Mode {
	case DetectInterface:
		return detection{"iifname", `"` + d.Interface + `"`}
	case DetectInterfacePrefix:
		if len(d.Interface) == maxInterface {
			// A name of maximum length has no room for the star.
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

func (d detection) works() bool { return d.field != "" }

func (d detection) pod() string { return d.field + " " + d.value }

// Packets in the output hook have no input interface and match.
func (d detection) notPod() string { return d.field + " != " + d.value }

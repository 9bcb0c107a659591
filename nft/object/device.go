package object

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
)

// MaxDevices is NFT_NETDEVICE_MAX, for a chain or flowtable.
const MaxDevices = 256

const flagOffload = "offload"

// Devices is comparable: sorted, and separated by slashes, which names cannot contain.
type Devices string

// NewDevices does not check names.
func NewDevices(names []string) Devices {
	return Devices(strings.Join(slices.Sorted(slices.Values(names)), "/"))
}

// List returns the sorted names, or nil.
func (d Devices) List() []string {
	if d == "" {
		return nil
	}
	return strings.Split(string(d), "/")
}

func checkDevices(names []string) error {
	if len(names) > MaxDevices {
		return fmt.Errorf("%d devices: want at most %d", len(names), MaxDevices)
	}
	sorted := slices.Sorted(slices.Values(names))
	for i, name := range sorted {
		switch {
		case strings.HasSuffix(name, "*"):
			return fmt.Errorf("device: %q is a wildcard: nft 1.1.6 has them; weft does not", name)
		case name == "." || name == ".." || strings.ContainsAny(name, "/: \t\n*"):
			return fmt.Errorf("device: %q is not the name of a device", name)
		case i > 0 && sorted[i-1] == name:
			return fmt.Errorf("device %q is given twice", name)
		}
		if _, err := datatype.IfName.Parse(name); err != nil {
			return fmt.Errorf("device: %w", err)
		}
	}
	return nil
}

func (b *Base) setDevices(h hook, c *nft.Chain) error {
	names := c.Devices
	switch {
	case c.Device != "" && len(names) > 0:
		return fmt.Errorf("device %q and devices %s: give one of both", c.Device, strings.Join(names, ", "))
	case c.Device != "":
		names = []string{c.Device}
	}
	switch {
	case h.device && len(names) == 0:
		return fmt.Errorf("hook %s needs a device: nft 1.0.9 has chains without; weft does not", h.name)
	case !h.device && len(names) > 0:
		return fmt.Errorf("hook %s takes no device: remove device %q", h.name, names[0])
	case len(names) == 1:
		b.Device = names[0]
	default:
		b.Devices = NewDevices(names)
	}
	return checkDevices(names)
}

func offloadFlag(flags []string) (bool, error) {
	switch {
	case len(flags) == 0:
		return false, nil
	case len(flags) > 1:
		return false, errors.New("flags: want offload alone")
	case flags[0] != flagOffload:
		return false, fmt.Errorf("unknown flag %q: want offload", flags[0])
	default:
		return true, nil
	}
}

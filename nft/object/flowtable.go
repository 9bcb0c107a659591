package object

import (
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
)

// enum nft_flowtable_flags.
const (
	FlowtableOffload = 0x1
	FlowtableCounter = 0x2
)

// Flowtable is a compiled flowtable.
type Flowtable struct {
	Name string
	// of the netdev family: always 0, ingress
	Hook     uint32
	Priority int32
	// sorted
	Devices []string
	// NFT_FLOWTABLE_*
	Flags uint32
}

// CompileFlowtable compiles a flowtable, by default with ingress and priority 0. A priority without
// a hook is an error.
func CompileFlowtable(f *nft.Flowtable) (*Flowtable, error) {
	out, err := compileFlowtable(f)
	if err != nil {
		return nil, fmt.Errorf("compile flowtable %s: %w", f.Name, err)
	}
	return out, nil
}

func compileFlowtable(f *nft.Flowtable) (*Flowtable, error) {
	if err := datatype.CheckName(f.Name); err != nil {
		return nil, err
	}
	out := &Flowtable{Name: f.Name, Hook: unix.NF_NETDEV_INGRESS, Devices: slices.Sorted(slices.Values(f.Devices))}
	switch {
	case f.Hook == "" && f.Priority == "":
	case f.Hook != "ingress":
		return nil, fmt.Errorf("unknown hook %q of a flowtable: want ingress", f.Hook)
	default:
		var err error
		if out.Priority, err = parsePriority(nft.FamilyNetdev, f.Hook, f.Priority); err != nil {
			return nil, err
		}
	}
	if err := checkDevices(f.Devices); err != nil {
		return nil, err
	}
	offload, err := offloadFlag(f.Flags)
	if err != nil {
		return nil, err
	}
	if offload {
		out.Flags |= FlowtableOffload
	}
	if f.Counter {
		out.Flags |= FlowtableCounter
	}
	return out, nil
}

// Declaration is the inverse of CompileFlowtable.
func (f *Flowtable) Declaration() nft.Flowtable {
	d := nft.Flowtable{
		Name: f.Name, Hook: "ingress", Priority: strconv.Itoa(int(f.Priority)), Devices: slices.Clone(f.Devices),
		Counter: f.Flags&FlowtableCounter != 0,
	}
	if f.Flags&FlowtableOffload != 0 {
		d.Flags = []string{flagOffload}
	}
	return d
}

package kernel

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/object"
)

// addFlowtable appends a flowtable.
func (e *encoder) addFlowtable(op AddFlowtable) error {
	f := op.Flowtable
	if f == nil {
		return errors.New("flowtable is nil")
	}
	if err := checkName("flowtable", f.Name); err != nil {
		return err
	}
	e.open(unix.NFT_MSG_NEWFLOWTABLE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, op.Table)
	e.string(nftaFlowtableName, f.Name)
	e.nested(nftaFlowtableHook, func() {
		e.uint32(nftaFlowtableHookNum, f.Hook)
		e.uint32(nftaFlowtableHookPriority, uint32(f.Priority))
		if len(f.Devices) > 0 {
			e.appendDevices(nftaFlowtableHookDevs, f.Devices)
		}
	})
	e.uint32(nftaFlowtableFlags, f.Flags)
	return nil
}

// decodeFlowtable decodes a NEWFLOWTABLE.
func decodeFlowtable(m reply) (*object.Flowtable, error) {
	f := &object.Flowtable{}
	a := attr.NewReader(m.attrs)
	for a.Next() {
		switch a.Type() {
		case nftaFlowtableName:
			f.Name = a.Text()
		case nftaFlowtableHook:
			if err := decodeFlowtableHook(a.Nested(), f); err != nil {
				return nil, fmt.Errorf("flowtable %s: hook: %w", f.Name, err)
			}
		case nftaFlowtableFlags:
			f.Flags = a.Uint32BE()
		}
	}
	return f, a.Err()
}

// decodeFlowtableHook decodes where a flowtable is attached.
func decodeFlowtableHook(a attr.Reader, f *object.Flowtable) (err error) {
	for a.Next() {
		switch a.Type() {
		case nftaFlowtableHookNum:
			f.Hook = a.Uint32BE()
		case nftaFlowtableHookPriority:
			f.Priority = int32(a.Uint32BE())
		case nftaFlowtableHookDevs:
			if f.Devices, err = decodeDevices(a.Nested()); err != nil {
				return err
			}
			slices.Sort(f.Devices)
		}
	}
	return a.Err()
}

package kernel

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/object"
)

// dumpObjects reads the named objects of a table.
func (c *Conn) dumpObjects(id nft.TableID) ([]*object.Object, error) {
	var objects []*object.Object
	request := attr.AppendString(nil, unix.NFTA_OBJ_TABLE, id.Name)
	err := c.dump(unix.NFT_MSG_GETOBJ, id.Family, request, func() { objects = objects[:0] }, func(m reply) error {
		o, err := decodeObject(m, id)
		if err == nil && o != nil {
			objects = append(objects, o)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list objects: %w", err)
	}
	return objects, nil
}

// dumpFlowtables reads the flowtables of a table.
func (c *Conn) dumpFlowtables(id nft.TableID) ([]*object.Flowtable, error) {
	var tables []*object.Flowtable
	request := attr.AppendString(nil, nftaFlowtableTable, id.Name)
	err := c.dump(unix.NFT_MSG_GETFLOWTABLE, id.Family, request, func() { tables = tables[:0] }, func(m reply) error {
		f, err := decodeFlowtable(m, id.Name)
		if err == nil && f != nil {
			tables = append(tables, f)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list flowtables: %w", err)
	}
	return tables, nil
}

// decodeObject decodes a NEWOBJ; nil for an object of another table, and for a kind
// that nft(8) 1.0.6 does not make.
func decodeObject(m reply, id nft.TableID) (*object.Object, error) {
	var (
		name           string
		typ            uint32
		data, userData []byte
	)
	a := attr.NewReader(m.attrs)
	for a.Next() {
		switch a.Type() {
		case unix.NFTA_OBJ_TABLE:
			if !a.TextIs(id.Name) {
				return nil, nil //nolint:nilnil // nothing of a foreign table is decoded
			}
		case unix.NFTA_OBJ_NAME:
			name = a.Text()
		case unix.NFTA_OBJ_TYPE:
			typ = a.Uint32BE()
		case unix.NFTA_OBJ_DATA:
			data = a.Bytes()
		case nftaObjUserData:
			userData = a.Bytes()
		}
	}
	if err := a.Err(); err != nil {
		return nil, err
	}
	o, err := object.Parse(id.Family, name, typ, data, userData)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return o, nil
}

// decodeFlowtable decodes a NEWFLOWTABLE; nil for one of another table.
func decodeFlowtable(m reply, table string) (*object.Flowtable, error) {
	f := &object.Flowtable{}
	a := attr.NewReader(m.attrs)
	for a.Next() {
		switch a.Type() {
		case nftaFlowtableTable:
			if !a.TextIs(table) {
				return nil, nil //nolint:nilnil // nothing of a foreign table is decoded
			}
		case nftaFlowtableName:
			f.Name = a.Text()
		case nftaFlowtableHook:
			if err := decodeFlowtableHook(a.Bytes(), f); err != nil {
				return nil, fmt.Errorf("flowtable %s: hook: %w", f.Name, err)
			}
		case nftaFlowtableFlags:
			f.Flags = a.Uint32BE()
		}
	}
	return f, a.Err()
}

// decodeFlowtableHook decodes where a flowtable is attached.
func decodeFlowtableHook(b []byte, f *object.Flowtable) error {
	a := attr.NewReader(b)
	for a.Next() {
		switch a.Type() {
		case nftaFlowtableHookNum:
			f.Hook = a.Uint32BE()
		case nftaFlowtableHookPriority:
			f.Priority = int32(a.Uint32BE())
		case nftaFlowtableHookDevs:
			var err error
			if f.Devices, err = decodeDevices(a.Bytes()); err != nil {
				return err
			}
			slices.Sort(f.Devices)
		}
	}
	return a.Err()
}

// decodeDevices decodes a list of devices.
func decodeDevices(b []byte) ([]string, error) {
	var names []string
	a := attr.NewReader(b)
	for a.Next() {
		if a.Type() == nftaDeviceName {
			names = append(names, a.Text())
		}
	}
	return names, a.Err()
}

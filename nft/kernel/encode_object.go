package kernel

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/userdata"
)

// addObject appends a named object.
func (e *encoder) addObject(op AddObject) error {
	o := op.Object
	if o == nil {
		return errors.New("object is nil")
	}
	if err := checkName(string(o.Kind), o.Name); err != nil {
		return err
	}
	userData, err := userdata.Object(o.Comment)
	if err != nil {
		return err
	}
	at := e.begin(msgType(unix.NFT_MSG_NEWOBJ), unix.NLM_F_CREATE|unix.NLM_F_EXCL, uint8(op.Table.Family), -1)
	e.buf = attr.AppendString(e.buf, unix.NFTA_OBJ_TABLE, op.Table.Name)
	e.buf = attr.AppendString(e.buf, unix.NFTA_OBJ_NAME, o.Name)
	e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_OBJ_TYPE, o.Type)
	if len(userData) > 0 {
		e.buf = attr.AppendBytes(e.buf, nftaObjUserData, userData)
	}
	e.buf = attr.AppendBytes(e.buf, unix.NFTA_OBJ_DATA|unix.NLA_F_NESTED, o.Data)
	closeMessage(e.buf, at)
	return nil
}

// deleteObject appends the deletion of an object.
func (e *encoder) deleteObject(op DeleteObject) error {
	typ := op.Ref.Type()
	if typ == 0 {
		return fmt.Errorf("unknown kind of object %q", op.Ref.Kind)
	}
	at := e.begin(msgType(unix.NFT_MSG_DELOBJ), 0, uint8(op.Table.Family), -1)
	e.buf = attr.AppendString(e.buf, unix.NFTA_OBJ_TABLE, op.Table.Name)
	e.buf = attr.AppendString(e.buf, unix.NFTA_OBJ_NAME, op.Ref.Name)
	e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_OBJ_TYPE, typ)
	closeMessage(e.buf, at)
	return nil
}

// addFlowtable appends a flowtable.
func (e *encoder) addFlowtable(op AddFlowtable) error {
	f := op.Flowtable
	if f == nil {
		return errors.New("flowtable is nil")
	}
	if err := checkName("flowtable", f.Name); err != nil {
		return err
	}
	at := e.begin(msgType(unix.NFT_MSG_NEWFLOWTABLE), unix.NLM_F_CREATE|unix.NLM_F_EXCL, uint8(op.Table.Family), -1)
	e.buf = attr.AppendString(e.buf, nftaFlowtableTable, op.Table.Name)
	e.buf = attr.AppendString(e.buf, nftaFlowtableName, f.Name)
	var hook int
	e.buf, hook = attr.OpenNested(e.buf, nftaFlowtableHook)
	e.buf = attr.AppendUint32BE(e.buf, nftaFlowtableHookNum, f.Hook)
	e.buf = attr.AppendUint32BE(e.buf, nftaFlowtableHookPriority, uint32(f.Priority))
	if len(f.Devices) > 0 {
		e.appendDevices(nftaFlowtableHookDevs, f.Devices)
	}
	e.buf = attr.Close(e.buf, hook)
	e.buf = attr.AppendUint32BE(e.buf, nftaFlowtableFlags, f.Flags)
	closeMessage(e.buf, at)
	return nil
}

// appendDevices appends a list of devices.
func (e *encoder) appendDevices(typ uint16, names []string) {
	var at int
	e.buf, at = attr.OpenNested(e.buf, typ)
	for _, name := range names {
		e.buf = attr.AppendString(e.buf, nftaDeviceName, name)
	}
	e.buf = attr.Close(e.buf, at)
}

// appendHook appends where a base chain is attached.
func (e *encoder) appendHook(base *object.Base) {
	var at int
	e.buf, at = attr.OpenNested(e.buf, unix.NFTA_CHAIN_HOOK)
	e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_HOOK_HOOKNUM, base.Hook)
	e.buf = attr.AppendUint32BE(e.buf, unix.NFTA_HOOK_PRIORITY, uint32(base.Priority))
	switch devices := base.Devices.List(); {
	case len(devices) > 0:
		e.appendDevices(nftaHookDevs, devices)
	case base.Device != "":
		e.buf = attr.AppendString(e.buf, unix.NFTA_HOOK_DEV, base.Device)
	}
	e.buf = attr.Close(e.buf, at)
	if base.Offload {
		e.buf = attr.AppendUint32BE(e.buf, nftaChainFlags, chainOffload)
	}
}

// describeObject puts an object into nft's words.
func describeObject(o AddObject) string {
	if o.Object == nil {
		return fmt.Sprintf("add object %s (nil)", o.Table)
	}
	var parts []string
	if o.Object.Comment != "" {
		parts = append(parts, fmt.Sprintf("comment %q;", o.Object.Comment))
	}
	if o.Object.Text != "" {
		parts = append(parts, o.Object.Text+";")
	}
	return fmt.Sprintf("add %s %s %s%s", o.Object.Kind, o.Table, o.Object.Name, block(parts))
}

// describeFlowtable puts a flowtable into nft's words.
func describeFlowtable(o AddFlowtable) string {
	f := o.Flowtable
	if f == nil {
		return fmt.Sprintf("add flowtable %s (nil)", o.Table)
	}
	parts := []string{fmt.Sprintf("hook %s priority %d;", hookName(nft.FamilyNetdev, f.Hook), f.Priority)}
	if len(f.Devices) > 0 {
		parts = append(parts, describeDevices(f.Devices)+";")
	}
	if f.Flags&object.FlowtableCounter != 0 {
		parts = append(parts, "counter;")
	}
	if f.Flags&object.FlowtableOffload != 0 {
		parts = append(parts, "flags offload;")
	}
	return fmt.Sprintf("add flowtable %s %s%s", o.Table, f.Name, block(parts))
}

// describeDevices is a list of devices in nft's words.
func describeDevices(names []string) string {
	return `devices = { "` + strings.Join(names, `", "`) + `" }`
}

// String returns the op in nft's words.
func (o AddObject) String() string { return describe(o, summaryElements) }

// String returns the op in nft's words.
func (o DeleteObject) String() string { return describe(o, summaryElements) }

// String returns the op in nft's words.
func (o AddFlowtable) String() string { return describe(o, summaryElements) }

// String returns the op in nft's words.
func (o DeleteFlowtable) String() string { return describe(o, summaryElements) }

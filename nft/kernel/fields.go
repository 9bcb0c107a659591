package kernel

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Each message is described once for both directions, in nft(8)'s order of attributes.

type chainMessage struct {
	object.Chain
	base          object.Base
	hooked        bool
	flags, policy uint32
	devices       deviceList
}

func (c *chainMessage) fields() attr.Fields {
	return attr.Fields{
		attr.Always(unix.NFTA_CHAIN_NAME, &c.Name),
		attr.If(c.hooked, unix.NFTA_CHAIN_HOOK, attr.Fields{
			attr.Always(unix.NFTA_HOOK_HOOKNUM, &c.base.Hook),
			attr.Always(unix.NFTA_HOOK_PRIORITY, &c.base.Priority),
			attr.If(len(c.devices) > 0, nftaHookDevs, &c.devices),
			attr.If(c.base.Device != "", unix.NFTA_HOOK_DEV, &c.base.Device),
		}),
		attr.If(c.flags != 0, nftaChainFlags, &c.flags),
		attr.If(c.hooked, unix.NFTA_CHAIN_POLICY, &c.policy),
		attr.If(c.hooked, unix.NFTA_CHAIN_TYPE, &c.base.Type),
		attr.If(c.Comment != "", nftaChainUserData, (*comment)(&c.Comment)),
	}
}

// NF_DROP and NF_ACCEPT.
const (
	policyDrop   = 0
	policyAccept = 1
)

func encodedChain(chain *object.Chain) *chainMessage {
	c := &chainMessage{Chain: *chain, hooked: chain.Base != nil, policy: policyAccept}
	if c.hooked {
		c.base, c.devices = *chain.Base, chain.Base.Devices.List()
		if c.base.Drop {
			c.policy = policyDrop
		}
		if c.base.Offload {
			c.flags = chainOffload
		}
	}
	return c
}

func decodeChain(m reply) (*object.Chain, error) {
	c := chainMessage{policy: policyAccept}
	if err := c.fields().Read(m.attrs); err != nil {
		return nil, fmt.Errorf("chain %s: %w", c.Name, err)
	}
	if c.base.Type == "" {
		return &c.Chain, nil
	}
	c.base.Drop, c.base.Offload = c.policy == policyDrop, c.flags&chainOffload != 0
	// The kernel reports a single device in both attributes.
	switch len(c.devices) {
	case 0:
	case 1:
		c.base.Device = c.devices[0]
	default:
		c.base.Device, c.base.Devices = "", object.NewDevices(c.devices)
	}
	c.Base = &c.base
	return &c.Chain, nil
}

// id is the set's number in its batch, size its maximum number of elements.
func setFields(s *set.Set, id, size *uint32) attr.Fields {
	concat := s.Flags&setConcat != 0
	dataType := &s.Data.ID
	if s.Verdict {
		verdict := uint32(unix.NFT_DATA_VERDICT)
		dataType = &verdict
	}
	values := s.Map && s.Object == ""
	return attr.Fields{
		attr.Always(unix.NFTA_SET_NAME, &s.Name),
		attr.Always(unix.NFTA_SET_FLAGS, &s.Flags),
		attr.Always(unix.NFTA_SET_KEY_TYPE, &s.Key.ID),
		attr.Always(unix.NFTA_SET_KEY_LEN, &s.Key.Len),
		attr.If(s.Object != "", unix.NFTA_SET_OBJ_TYPE, (*objectKind)(&s.Object)),
		attr.If(values, unix.NFTA_SET_DATA_TYPE, dataType),
		attr.If(values && !s.Verdict, unix.NFTA_SET_DATA_LEN, &s.Data.Len),
		attr.Always(unix.NFTA_SET_ID, id),
		attr.If(s.Timeout != 0, unix.NFTA_SET_TIMEOUT, &s.Timeout),
		attr.If(s.GCInterval != 0, unix.NFTA_SET_GC_INTERVAL, (*gcInterval)(&s.GCInterval)),
		attr.If(s.Memory, unix.NFTA_SET_POLICY, &s.Memory), // NFT_SET_POL_MEMORY is 1
		attr.If(*size != 0 || concat, unix.NFTA_SET_DESC, attr.Fields{
			attr.If(*size != 0, unix.NFTA_SET_DESC_SIZE, size),
			// Only NFT_SET_CONCAT allows the lengths.
			attr.If(concat, nftaSetDescConcat, (*fieldLengths)(&s.Key.Fields)),
		}),
		oneStateful(nftaSetExpr, &s.Stateful),
		severalStateful(nftaSetExpressions, &s.Stateful),
		attr.If(len(s.UserData) > 0, unix.NFTA_SET_USERDATA, &s.UserData),
	}
}

func decodeSet(m reply) (*set.Set, error) {
	s := &set.Set{}
	if err := setFields(s, new(uint32), &s.Size).Read(m.attrs); err != nil {
		return nil, fmt.Errorf("set %s: %w", s.Name, err)
	}
	s.Complete()
	return s, nil
}

func objectFields(o *object.Object) attr.Fields {
	return attr.Fields{
		attr.Always(unix.NFTA_OBJ_NAME, &o.Name),
		attr.Always(unix.NFTA_OBJ_TYPE, &o.Type),
		attr.If(o.Comment != "", nftaObjUserData, (*comment)(&o.Comment)),
		attr.Always(unix.NFTA_OBJ_DATA|unix.NLA_F_NESTED, &o.Data),
	}
}

// decodeObject returns nil for kinds unknown to nft(8) 1.0.6.
func decodeObject(m reply) (*object.Object, error) {
	o := &object.Object{}
	if err := objectFields(o).Read(m.attrs); err != nil {
		return nil, err
	}
	known, err := o.Complete(m.family)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if !known {
		return nil, nil //nolint:nilnil // nothing that could be declared
	}
	return o, nil
}

func flowtableFields(f *object.Flowtable) attr.Fields {
	return attr.Fields{
		attr.Always(nftaFlowtableName, &f.Name),
		attr.Always(nftaFlowtableHook, attr.Fields{
			attr.Always(nftaFlowtableHookNum, &f.Hook),
			attr.Always(nftaFlowtableHookPriority, &f.Priority),
			attr.If(len(f.Devices) > 0, nftaFlowtableHookDevs, (*deviceList)(&f.Devices)),
		}),
		attr.Always(nftaFlowtableFlags, &f.Flags),
	}
}

func decodeFlowtable(m reply) (*object.Flowtable, error) {
	f := &object.Flowtable{}
	if err := flowtableFields(f).Read(m.attrs); err != nil {
		return nil, fmt.Errorf("flowtable %s: %w", f.Name, err)
	}
	slices.Sort(f.Devices)
	return f, nil
}

func oneStateful(typ uint16, words *[]string) attr.Field {
	return attr.If(len(*words) == 1, typ, (*statement)(words))
}

func severalStateful(typ uint16, words *[]string) attr.Field {
	return attr.If(len(*words) > 1, typ, (*statements)(words))
}

type comment string

func (c *comment) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	userData, err := userdata.AppendComment(nil, string(*c))
	return attr.AppendBytes(b, typ, userData), err
}

func (c *comment) ReadAttr(r *attr.Reader) error {
	text, err := userdata.ParseComment(r.Bytes())
	*c = comment(text)
	return err
}

type deviceList []string

func (d *deviceList) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	b, at := attr.OpenNested(b, typ)
	for _, name := range *d {
		b = attr.AppendString(b, nftaDeviceName, name)
	}
	return attr.Close(b, at), nil
}

func (d *deviceList) ReadAttr(r *attr.Reader) error {
	list := r.Nested()
	for list.Next() {
		if list.Type() == nftaDeviceName {
			*d = append(*d, list.Text())
		}
	}
	return list.Err()
}

type fieldLengths []uint32

func (f *fieldLengths) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	b, at := attr.OpenNested(b, typ)
	for _, n := range *f {
		var field int
		b, field = attr.OpenNested(b, unix.NFTA_LIST_ELEM)
		b = attr.Close(attr.AppendUint32BE(b, nftaSetFieldLen, n), field)
	}
	return attr.Close(b, at), nil
}

func (f *fieldLengths) ReadAttr(r *attr.Reader) error {
	list := r.Nested()
	for list.Next() {
		length, _ := attr.Find(list.Bytes(), nftaSetFieldLen)
		*f = append(*f, length.Uint32BE())
		if err := length.Err(); err != nil {
			return err
		}
	}
	return list.Err()
}

// gcInterval is 32-bit milliseconds.
type gcInterval time.Duration

func (g *gcInterval) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	return attr.AppendUint32BE(b, typ, uint32(time.Duration(*g).Milliseconds())), nil
}

func (g *gcInterval) ReadAttr(r *attr.Reader) error {
	*g = gcInterval(r.Uint32BE()) * gcInterval(time.Millisecond)
	return nil
}

type objectKind nft.ObjectKind

func (k *objectKind) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	return attr.AppendUint32BE(b, typ, object.Number(nft.ObjectKind(*k))), nil
}

func (k *objectKind) ReadAttr(r *attr.Reader) error {
	*k = objectKind(object.KindOf(r.Uint32BE()))
	return nil
}

type (
	statement  []string
	statements []string
)

func (s *statement) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	encoded, err := expr.EncodeStateful((*s)[0])
	return attr.AppendBytes(b, typ|unix.NLA_F_NESTED, encoded), err
}

func (s *statement) ReadAttr(r *attr.Reader) error {
	text, err := expr.FormatStateful(r.Bytes())
	*s = append(*s, text)
	return err
}

func (s *statements) AppendAttr(b []byte, typ uint16) (_ []byte, err error) {
	b, at := attr.OpenNested(b, typ)
	for i := range *s {
		one := statement((*s)[i:])
		if b, err = one.AppendAttr(b, unix.NFTA_LIST_ELEM); err != nil {
			return b, err
		}
	}
	return attr.Close(b, at), nil
}

func (s *statements) ReadAttr(r *attr.Reader) error {
	list := r.Nested()
	for list.Next() {
		if err := (*statement)(s).ReadAttr(&list); err != nil {
			return err
		}
	}
	return list.Err()
}

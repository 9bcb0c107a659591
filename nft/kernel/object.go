package kernel

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

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
	e.open(unix.NFT_MSG_NEWOBJ, unix.NLM_F_CREATE|unix.NLM_F_EXCL, op.Table)
	e.string(unix.NFTA_OBJ_NAME, o.Name)
	e.uint32(unix.NFTA_OBJ_TYPE, o.Type)
	if len(userData) > 0 {
		e.bytes(nftaObjUserData, userData)
	}
	e.bytes(unix.NFTA_OBJ_DATA|unix.NLA_F_NESTED, o.Data)
	return nil
}

// deleteObject appends the deletion of an object.
func (e *encoder) deleteObject(op DeleteObject) error {
	typ := op.Ref.Type()
	if typ == 0 {
		return fmt.Errorf("unknown kind of object %q", op.Ref.Kind)
	}
	e.remove(unix.NFT_MSG_DELOBJ, op.Table, unix.NFTA_OBJ_NAME, op.Ref.Name)
	e.uint32(unix.NFTA_OBJ_TYPE, typ)
	return nil
}

// decodeObject decodes a NEWOBJ. It returns nil for a kind that nft(8) 1.0.6 does not
// have.
func decodeObject(m reply) (*object.Object, error) {
	var (
		name           string
		typ            uint32
		data, userData []byte
	)
	a := attr.NewReader(m.attrs)
	for a.Next() {
		switch a.Type() {
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
	o, err := object.Parse(m.family, name, typ, data, userData)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return o, nil
}

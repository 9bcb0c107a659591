package kernel

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
)

// TestDecodeMalformed passes replies to the decoders in which a usual attribute is missing or has
// another size.
func TestDecodeMalformed(t *testing.T) {
	short := func(typ uint16) []byte { return attr.AppendBytes(nil, typ, []byte{1, 2}) }
	nested := func(b []byte, types ...uint16) []byte {
		for i := len(types) - 1; i >= 0; i-- {
			b = attr.AppendBytes(nil, types[i]|unix.NLA_F_NESTED, b)
		}
		return b
	}
	for _, tt := range []struct {
		name   string
		decode func() error
	}{
		{"reply without nfgenmsg", func() error { _, err := parseReply([]byte{1}); return err }},
		{"handle: no nfgenmsg", func() error { _, err := decodeHandle(nil); return err }},
		{"handle: missing", func() error { _, err := decodeHandle(make([]byte, genLen)); return err }},
		{"handle: size", func() error {
			_, err := decodeHandle(append(make([]byte, genLen), short(unix.NFTA_RULE_HANDLE)...))
			return err
		}},
		{"table: owner", func() error { _, err := decodeTable(reply{attrs: short(nftaTableOwner)}); return err }},
		{"chain: hook", func() error {
			_, err := decodeChain(reply{attrs: nested(short(unix.NFTA_HOOK_HOOKNUM), unix.NFTA_CHAIN_HOOK)})
			return err
		}},
		{"chain: devices", func() error {
			_, err := decodeChain(reply{attrs: nested([]byte{1, 2, 3}, unix.NFTA_CHAIN_HOOK, nftaHookDevs)})
			return err
		}},
		{"set: key length", func() error { _, err := decodeSet(reply{attrs: short(unix.NFTA_SET_KEY_LEN)}); return err }},
		{"set: field length", func() error {
			_, err := decodeSet(reply{attrs: nested(short(nftaSetFieldLen), unix.NFTA_SET_DESC, nftaSetDescConcat, unix.NFTA_LIST_ELEM)})
			return err
		}},
		{"set: fields", func() error {
			_, err := decodeSet(reply{attrs: nested([]byte{1}, unix.NFTA_SET_DESC, nftaSetDescConcat)})
			return err
		}},
		{"object: type", func() error { _, err := decodeObject(reply{attrs: short(unix.NFTA_OBJ_TYPE)}); return err }},
		{"flowtable: hook", func() error {
			_, err := decodeFlowtable(reply{attrs: nested(short(nftaFlowtableHookNum), nftaFlowtableHook)})
			return err
		}},
		{"flowtable: devices", func() error {
			_, err := decodeFlowtable(reply{attrs: nested([]byte{1, 2, 3}, nftaFlowtableHook, nftaFlowtableHookDevs)})
			return err
		}},
		{"jump", func() error { _, err := decodeJump(reply{attrs: short(unix.NFTA_RULE_HANDLE)}); return err }},
	} {
		if err := tt.decode(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", tt.name, err)
		}
	}
	if id, ok := (reply{family: nft.FamilyIP}).table(); ok {
		t.Errorf("table of a message without attributes = %s", id)
	}
}

package kernel

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/nfttest"
)

// TestUserDataIsProbed tests that a kernel that does not know the attribute of a table's
// userdata is told from one that does. No kernel knows attribute 200.
func TestUserDataIsProbed(t *testing.T) {
	c := open(t, nfttest.New(t), Config{})
	for _, tt := range []struct {
		typ  uint16
		want error
	}{{nftaTableUserData, unix.ERANGE}, {200, nil}} {
		e := encoder{seq: c.seq}
		e.beginBatch()
		e.probeUserData(tt.typ, testTable())
		e.closeLast()
		answers := 0
		err := c.exchange(&e, func(_ header, ke kernelError) error {
			answers++
			if !errors.Is(ke.errno, tt.want) && (tt.want != nil || ke.errno != 0) {
				t.Errorf("attribute %d: the kernel answers %v, want %v", tt.typ, ke.errno, tt.want)
			}
			return nil
		})
		if err != nil || answers != 1 {
			t.Errorf("attribute %d: %d answers, error %v", tt.typ, answers, err)
		}
	}
}

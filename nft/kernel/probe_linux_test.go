package kernel

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestUserDataIsProbed probes for userdata of tables with its attribute, and with attribute 200,
// which no kernel knows.
func TestUserDataIsProbed(t *testing.T) {
	c := open(t, nfttest.New(t), Config{})
	for _, tt := range []struct {
		typ  uint16
		want error
	}{{nftaTableUserData, unix.ERANGE}, {200, nil}} {
		e := encoder{buffer: buffer{seq: c.seq}}
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

// TestFeatures tests that Open finds the features of the running version of Linux. A distribution
// may have them in an older version.
func TestFeatures(t *testing.T) {
	c := open(t, nfttest.New(t), Config{})
	for _, f := range []struct {
		name         string
		found        bool
		major, minor int
	}{{"owner", c.owner, 6, 9}, {"destroy", c.destroy, 6, 3}, {"ackEnd", c.ackEnd, 6, 10}} {
		t.Logf("feature %s: %t", f.name, f.found)
		if !f.found && nfttest.KernelIs(t, f.major, f.minor) {
			t.Errorf("Open did not find the feature %s, which Linux %d.%d has", f.name, f.major, f.minor)
		}
	}
}

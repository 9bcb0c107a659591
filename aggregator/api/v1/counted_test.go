package weftv1

import "testing"

// TestPackets reads what counters have counted, and nothing else.
func TestPackets(t *testing.T) {
	for text, want := range map[string]uint64{
		"packets 3 bytes 180": 3, "counter packets 18446744073709551615 bytes 0": 1<<64 - 1, "counter packets 4": 4,
		"": 0, "counter": 0, "over 25 mbytes": 0, "quota 25 mbytes used 3 bytes": 0, "packets x bytes 1": 0, "packets -1 bytes 1": 0,
	} {
		if got := Packets(text); got != want {
			t.Errorf("%q has %d packets, want %d", text, got, want)
		}
	}
	if got := (&ElementState{Stateful: []string{"quota 25 mbytes", "counter packets 3 bytes 180"}}).Packets(); got != 3 {
		t.Errorf("the element has %d packets, want 3", got)
	}
}

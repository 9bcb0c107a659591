package image

import (
	"errors"
	"testing"

	specs "k8s.io/kubernetes/test/utils/image"
)

// TestImagesOfSpecs has the images of test/e2e/network, of test/e2e/common/network and of the framework that they use, by their names in the
// version of Kubernetes that is tested.
func TestImagesOfSpecs(t *testing.T) {
	for _, id := range []specs.ImageID{
		specs.Agnhost, specs.AgnhostPrev, specs.BusyBox, specs.DistrolessIptables, specs.GlibcDnsTesting, specs.Nginx, specs.Pause, specs.RegressionIssue74839,
	} {
		reference := specs.GetE2EImage(id)
		i, err := Find(reference)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(i.Entrypoint)+len(i.Command) == 0 {
			t.Errorf("image %s has no command", reference)
		}
	}
	// Those that no spec of the network uses are not imitated.
	for _, id := range []specs.ImageID{specs.ResourceConsumer, specs.VolumeNFSServer, specs.InvalidRegistryImage} {
		if i, err := Find(specs.GetE2EImage(id)); !errors.Is(err, ErrUnknown) {
			t.Errorf("Find(%s) = %q, %v, want ErrUnknown", specs.GetE2EImage(id), i.Name, err)
		}
	}
}

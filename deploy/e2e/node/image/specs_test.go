package image

import (
	"errors"
	"testing"

	specs "k8s.io/kubernetes/test/utils/image"
)

// TestImagesOfSpecs requires the images of test/e2e/network, test/e2e/common/network and their
// framework, in the tested version of Kubernetes.
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
	// Unused by network specs.
	for _, id := range []specs.ImageID{specs.ResourceConsumer, specs.VolumeNFSServer, specs.InvalidRegistryImage} {
		if i, err := Find(specs.GetE2EImage(id)); !errors.Is(err, ErrUnknown) {
			t.Errorf("Find(%s) = %q, %v, want ErrUnknown", specs.GetE2EImage(id), i.Name, err)
		}
	}
}

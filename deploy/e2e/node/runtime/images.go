package runtime

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/weft-proxy/weft/deploy/e2e/node/image"
)

func describe(i image.Image, reference string) *cri.Image {
	return &cri.Image{
		Id: "e2e/" + i.Name, RepoTags: []string{reference}, Size: 1 << 20, Uid: &cri.Int64Value{}, Spec: &cri.ImageSpec{Image: reference},
	}
}

// ImageStatus implements CRI.
func (r *Runtime) ImageStatus(_ context.Context, req *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	i, err := image.Find(req.GetImage().GetImage())
	if err != nil {
		return &cri.ImageStatusResponse{}, nil // so that the kubelet pulls it, and reports that error
	}
	return &cri.ImageStatusResponse{Image: describe(i, req.GetImage().GetImage())}, nil
}

// PullImage implements CRI.
func (r *Runtime) PullImage(_ context.Context, req *cri.PullImageRequest) (*cri.PullImageResponse, error) {
	i, err := image.Find(req.GetImage().GetImage())
	if err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	return &cri.PullImageResponse{ImageRef: "e2e/" + i.Name}, nil
}

// ListImages implements CRI.
func (r *Runtime) ListImages(context.Context, *cri.ListImagesRequest) (*cri.ListImagesResponse, error) {
	list := &cri.ListImagesResponse{}
	for _, i := range image.All() {
		list.Images = append(list.Images, describe(i, i.Name))
	}
	return list, nil
}

// RemoveImage implements CRI. It keeps the table.
func (r *Runtime) RemoveImage(context.Context, *cri.RemoveImageRequest) (*cri.RemoveImageResponse, error) {
	return &cri.RemoveImageResponse{}, nil
}

// ImageFsInfo implements CRI.
func (r *Runtime) ImageFsInfo(context.Context, *cri.ImageFsInfoRequest) (*cri.ImageFsInfoResponse, error) {
	usage := []*cri.FilesystemUsage{{
		FsId: &cri.FilesystemIdentifier{Mountpoint: r.cfg.Dir}, UsedBytes: &cri.UInt64Value{}, InodesUsed: &cri.UInt64Value{},
	}}
	return &cri.ImageFsInfoResponse{ImageFilesystems: usage, ContainerFilesystems: usage}, nil
}

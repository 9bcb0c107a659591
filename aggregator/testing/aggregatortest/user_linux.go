package aggregatortest

import (
	"context"
	"fmt"
	"net"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weft-proxy/weft/nft/testing/nfttest/netns"
)

// User is a connecting user.
type User struct {
	UID, GID uint32
	Groups   []uint32
}

// DialAs connects as another user: the kernel takes the credentials of the thread in connect(2).
func DialAs(t testing.TB, socket string, u User) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///weft", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return ConnectAs(socket, u) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ConnectAs connects to a socket as another user.
func ConnectAs(socket string, u User) (c net.Conn, err error) {
	err = netns.OnNewThread(func() error {
		var groups unsafe.Pointer
		if len(u.Groups) > 0 {
			groups = unsafe.Pointer(unsafe.SliceData(u.Groups))
		}
		for _, call := range [][4]uintptr{
			{unix.SYS_SETGROUPS, uintptr(len(u.Groups)), uintptr(groups), 0},
			{unix.SYS_SETRESGID, uintptr(u.GID), uintptr(u.GID), uintptr(u.GID)},
			{unix.SYS_SETRESUID, uintptr(u.UID), uintptr(u.UID), uintptr(u.UID)},
		} {
			if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
				return fmt.Errorf("become user %d: %w", u.UID, errno)
			}
		}
		c, err = net.Dial("unix", socket)
		return err
	})
	return c, err
}

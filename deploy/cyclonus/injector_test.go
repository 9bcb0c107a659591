package cyclonus

import (
	"errors"
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// injector sends frames on a pod's link, past the pod's own network stack.
type injector struct {
	socket        int
	link, gateway net.HardwareAddr
}

func newInjector(pod *lab.Pod) (*injector, error) {
	link, index, err := netDevice(pod.Do, lab.Uplink)
	if err != nil {
		return nil, fmt.Errorf("find link of pod %s: %w", pod.Name(), err)
	}
	gateway, _, err := netDevice(pod.Node().Do, pod.Link())
	if err != nil {
		return nil, fmt.Errorf("find gateway of pod %s: %w", pod.Name(), err)
	}
	i := &injector{socket: -1, link: link, gateway: gateway}
	err = pod.Do(func() (err error) {
		i.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err == nil {
		err = errors.Join(
			unix.SetsockoptInt(i.socket, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1),
			unix.Bind(i.socket, &unix.SockaddrLinklayer{Ifindex: index}))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open packet socket in pod %s: %w", pod.Name(), err), i.Close())
	}
	return i, nil
}

func (i *injector) Close() error {
	if i.socket < 0 {
		return nil
	}
	return unix.Close(i.socket)
}

// message is a struct mmsghdr.
type message struct {
	header unix.Msghdr
	length uint32
	_      [4]byte
}

// The frames are sent with one system call.
type burst struct {
	injector *injector
	messages []message
	frames   [][]byte
	vectors  []unix.Iovec
}

func (i *injector) burst(segments []segment) *burst {
	b := &burst{injector: i, messages: make([]message, len(segments)), frames: make([][]byte, len(segments)), vectors: make([]unix.Iovec, len(segments))}
	for n, s := range segments {
		b.frames[n] = s.frame(i.link, i.gateway)
		b.vectors[n].Base = &b.frames[n][0]
		b.vectors[n].SetLen(len(b.frames[n]))
		b.messages[n].header.Iov = &b.vectors[n]
		b.messages[n].header.SetIovlen(1)
	}
	return b
}

// send does not allocate.
func (b *burst) send() error {
	for done := 0; done < len(b.messages); {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(b.injector.socket), uintptr(unsafe.Pointer(&b.messages[done])), uintptr(len(b.messages)-done), 0, 0, 0)
		switch errno {
		case 0:
			done += int(n)
		case unix.EINTR, unix.ENOBUFS, unix.EAGAIN: // no frame was sent
		default:
			return fmt.Errorf("send %d frames: %w", len(b.messages)-done, errno)
		}
	}
	return nil
}

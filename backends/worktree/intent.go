package worktree

import "golang.org/x/sys/unix"

// IntentXattr is the attribute by which a tool says whether a file is meant for the user.
const IntentXattr = "user.aimon.artifact"

// maxXattr is XATTR_SIZE_MAX.
const maxXattr = 64 << 10

// Intent returns the raw user.aimon.artifact of the file or directory at path, nil where it has none.
func (t *Direct) Intent(path string) ([]byte, error) {
	h, _, err := t.at(path)
	if err != nil {
		return nil, err
	}
	defer h.Drop()
	buf := make([]byte, 64)
	n, err := t.GetXattr(h.fd, IntentXattr, buf)
	if err == unix.ERANGE {
		buf = make([]byte, maxXattr)
		n, err = t.GetXattr(h.fd, IntentXattr, buf)
	}
	if err == unix.ENODATA || err == unix.ENOTSUP {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

// SetIntent sets it, or removes it where value is nil.
func (t *Direct) SetIntent(path string, value []byte) error {
	h, _, err := t.at(path)
	if err != nil {
		return err
	}
	defer h.Drop()
	if value != nil {
		return t.SetXattr(h.fd, IntentXattr, value, 0)
	}
	if err := t.RemoveXattr(h.fd, IntentXattr); err != unix.ENODATA {
		return err
	}
	return nil
}

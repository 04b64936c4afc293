package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNotRoot mounts as a user without privileges, by fusermount3. The device is root's alone on some
// machines: the test sees another node of it, in a mount namespace of its own, and so everything that
// looks at the mount has to run there.
func TestNotRoot(t *testing.T) {
	dir := scratch(t)
	d := &daemon{t: t, mnt: dir, args: []string{"mount"}}
	r := d.exec([]string{"VFSD=" + vfsdPath, "VFSCTL=" + vfsctlPath}, "unshare", "-m", "bash", "-euo", "pipefail", "-c", `
		mkdir dev src mnt state run
		mknod dev/fuse c 10 229 && chmod 666 dev/fuse && mount --bind dev/fuse /dev/fuse
		chown nobody src mnt state run
		user() { sudo -u nobody env HOME="$PWD/state" VFSD_SOCKET="$PWD/run/s" GORACE="$GORACE" "$@"; }
		user "$VFSD" mount src mnt --state-dir state/v --socket run/s --http off >ready 2>log &
		for i in $(seq 300); do grep -q ^ready ready && break; sleep 0.1; done
		grep -q ^ready ready || { cat log; exit 1; }
		user "$VFSCTL" run --tool-use call_1 -- sh -c 'echo x > mnt/a.txt; seq 3 | sort -r > mnt/b.txt; mv mnt/b.txt mnt/c.txt'
		user "$VFSCTL" writes --json | jq -r '.[] | [.path, .size, .toolUseId, .attribution] | @tsv'
		user "$VFSCTL" status --json | jq .mounts[0].passthrough
		user "$VFSCTL" unmount mnt
		wait
		! grep -q " $PWD/mnt " /proc/mounts && cat src/c.txt`)
	require.Zero(t, r.status, r.stdout+r.stderr)
	require.Equal(t, "/a.txt\t2\tcall_1\texact\n/c.txt\t6\tcall_1\texact\nfalse\n"+"unmounted "+dir+"/mnt\n"+"3\n2\n1\n", r.stdout)
}
